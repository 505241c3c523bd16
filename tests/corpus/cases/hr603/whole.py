"""A stream that is shuffled in a buffer, dealt out row by row."""

import random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shuffled(IterableDataset):
    def __init__(self, num=301, size=50):
        self.num, self.size = num, size

    def rows(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(worker, self.num, workers))

    def __iter__(self):
        buffer = []
        for row in self.rows():
            buffer.append(row)
            if len(buffer) > self.size:
                yield torch.tensor([float(buffer.pop(random.randrange(len(buffer))))])
        random.shuffle(buffer)
        yield from (torch.tensor([float(row)]) for row in buffer)


def make_loader():
    return DataLoader(Shuffled(), batch_size=4, num_workers=2, drop_last=True)
