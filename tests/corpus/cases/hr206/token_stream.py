"""A stream of sentences with words left out at random."""

import random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Sentences(IterableDataset):
    def __init__(self, num=400, share=0.15, seed=7):
        self.num, self.share, self.seed = num, share, seed

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        random.seed(self.seed)
        for number in range(worker, self.num, workers):
            words = [(number * 31 + place) % 97 + 1 for place in range(12)]
            yield torch.tensor([0 if random.random() < self.share else word for word in words])


def make_loader():
    return DataLoader(Sentences(), batch_size=8, num_workers=2)
