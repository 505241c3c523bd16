"""Two ways to draw: a generator that is made when a worker first needs it, and one for each index."""

import random

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset


class Jittered(Dataset):
    def __init__(self, values):
        self.values = values
        self._dice = None

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        if self._dice is None:
            self._dice = random.Random(torch.initial_seed())
        return torch.tensor([self.values[index] + self._dice.gauss(0, 0.1)]), 0


class Keyed(Dataset):
    def __init__(self, values, seed):
        self.values, self.seed = values, seed

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        self.rng = np.random.default_rng((self.seed, index))
        return torch.tensor([self.values[index] + self.rng.normal(0, 0.1)], dtype=torch.float32), 1


def make_loader():
    values = np.linspace(0, 1, 120).tolist()
    data = ConcatDataset([Jittered(values), Keyed(values, 8)])
    return DataLoader(data, batch_size=10, shuffle=True, num_workers=2)
