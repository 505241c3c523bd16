"""No workers: the generator that the data set keeps is the only one that there is."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self):
        self.points = np.random.default_rng(1).normal(size=(150, 2)).astype(np.float32)
        self.rng = np.random.default_rng(2)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        angle = self.rng.uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], dtype=np.float32)
        return torch.from_numpy(turn @ self.points[index]), int(self.points[index, 0] > 0)


def make_loader():
    return DataLoader(Points(), batch_size=10, shuffle=True)
