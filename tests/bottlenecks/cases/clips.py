"""Short clips out of a video store."""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __init__(self, count=3200):
        rng = np.random.default_rng(12)
        self.clips = rng.integers(0, 255, (64, 8, 16, 16), dtype=np.uint8)
        self.seek_s = np.where(rng.random(count) < 0.01, 0.2, 0.004)

    def __len__(self):
        return len(self.seek_s)

    def fetch(self, index):
        time.sleep(self.seek_s[index])
        return self.clips[index % 64]

    def __getitem__(self, index):
        return torch.from_numpy(self.fetch(index)).float() / 255


def make_loader():
    return DataLoader(Clips(), batch_size=8, shuffle=True, num_workers=2)


def train_step(clips):
    clips.mean(dim=(1, 2, 3))
    time.sleep(0.025)  # the device computes
