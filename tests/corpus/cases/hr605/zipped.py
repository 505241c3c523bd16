import torch
from torch.utils.data import DataLoader, IterableDataset


class Pairs(IterableDataset):
    def __init__(self, left, right):
        self.pairs = zip(left, right)

    def __iter__(self):
        return self.pairs


def make_loader():
    left = torch.arange(90.0).reshape(45, 2)
    return DataLoader(Pairs(left, left.sum(1)), batch_size=9)
