"""Sentences in batches of equal size in tokens: long and short ones take turns."""

import torch
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __len__(self):
        return 1360

    def __getitem__(self, index):
        return torch.full((8,), index), index % 3


class LongAndShort:
    """Yields 64 short ones, then 4 long ones, and so on."""

    def __init__(self, num, sizes):
        self.num, self.sizes = num, sizes

    def __iter__(self):
        place = turn = 0
        while place < self.num:
            size = self.sizes[turn % len(self.sizes)]
            yield list(range(place, min(place + size, self.num)))
            place, turn = place + size, turn + 1

    def __len__(self):
        return sum(1 for _ in self)


def make_loader():
    data = Sentences()
    return DataLoader(data, batch_sampler=LongAndShort(len(data), (64, 4)), num_workers=2)
