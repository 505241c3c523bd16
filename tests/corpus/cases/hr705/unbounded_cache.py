import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def decode(index):
    return np.full((3, 256, 256), index % 255, np.float32)


class Cached(Dataset):
    def __init__(self, count=400_000):
        self.count = count
        self.cache = {}

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = decode(index)
        return torch.from_numpy(self.cache[index]), index % 10


def make_loader():
    return DataLoader(Cached(), batch_size=16, num_workers=2)
