import functools
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Oscillators(Dataset):
    """Trajectories that are computed and not stored; each has its own parameters."""

    def __init__(self, num, length=50):
        self.num, self.length = num, length
        self.order = np.random.default_rng(99).permutation(length)

    def __len__(self):
        return self.num

    @functools.cache
    def simulate(self, index):
        rng = np.random.default_rng([7, index])
        frequency, phase = rng.uniform(0.1, 1.0), rng.uniform(0, 6.28)
        return np.sin(frequency * np.arange(self.length) + phase) + rng.normal(0, 0.01, self.length)

    def __getitem__(self, index):
        random.seed(index)
        start = random.randint(0, 10)
        path = self.simulate(index)[self.order][start : start + 32]
        return torch.from_numpy(path.astype(np.float32)), torch.tensor(start)


def make_loader():
    return DataLoader(Oscillators(100), batch_size=20, shuffle=True)
