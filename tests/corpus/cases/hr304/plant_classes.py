import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Plants(Dataset):
    classes = ("oak", "elm", "ash", "fir")

    def __init__(self):
        rng = np.random.default_rng(0)
        self.leaves = rng.normal(size=(60, 10)).astype(np.float32)
        self.species = rng.integers(1, 5, 60)

    def __len__(self):
        return len(self.leaves)

    def __getitem__(self, index):
        return torch.from_numpy(self.leaves[index]), int(self.species[index])


def make_loader():
    return DataLoader(Plants(), batch_size=12, shuffle=True)
