"""Sums of growing length: the longer the training, the longer the sums."""

import torch
from torch.utils.data import DataLoader, Dataset


class Sums(Dataset):
    def __init__(self, num=400, longest=16):
        self.num, self.longest = num, longest
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def _length(self):
        return min(2 + self.epoch, self.longest)

    def __len__(self):
        return self.num

    def __getitem__(self, index):
        terms = torch.zeros(self.longest, dtype=torch.int64)
        length = self._length()
        terms[:length] = torch.randint(1, 10, (length,))
        return {"terms": terms, "sum": terms.sum()}


def make_loader():
    return DataLoader(Sums(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)


def train(epochs=10):
    loader = make_loader()
    for epoch in range(epochs):
        loader.dataset.set_epoch(epoch)
        for batch in loader:
            del batch
