"""Sums of growing length; the epoch lies where workers can see it."""

import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset


class Sums(Dataset):
    def __init__(self, num=400, longest=16):
        self.num, self.longest = num, longest
        self.epoch = multiprocessing.Value("i", 0)

    def set_epoch(self, epoch):
        self.epoch.value = epoch

    def __len__(self):
        return self.num

    def __getitem__(self, index):
        length = min(2 + self.epoch.value, self.longest)
        terms = torch.zeros(self.longest, dtype=torch.int64)
        terms[:length] = index % 7 + 1
        return {"terms": terms, "sum": terms.sum()}


def make_loader():
    return DataLoader(Sums(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)


def train(epochs=10):
    loader = make_loader()
    for epoch in range(epochs):
        loader.dataset.set_epoch(epoch)
        for batch in loader:
            del batch
