"""Objects from a store that answers slowly, asked for by many workers."""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Objects(Dataset):
    def __init__(self, count=4800):
        self.objects = np.random.default_rng(23).integers(0, 255, (64, 3, 20, 20), dtype=np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def get(self, index):
        time.sleep(0.01)
        return self.objects[index % 64]

    def __getitem__(self, index):
        return torch.from_numpy(self.get(index)).float() / 255


def make_loader():
    return DataLoader(Objects(), batch_size=16, shuffle=True, num_workers=6, persistent_workers=True)


def train_step(pictures):
    pictures.mean()
    time.sleep(0.12)  # the device computes
