"""The epoch changes the samples, and every epoch has new workers."""

import torch
from torch.utils.data import DataLoader, Dataset


class Rotated(Dataset):
    def __init__(self, num=300):
        self.num, self.epoch = num, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.num

    def __getitem__(self, index):
        return torch.arange(6).roll(self.epoch) + index, index % 2


def make_loader():
    return DataLoader(Rotated(), batch_size=16, shuffle=True, num_workers=2)
