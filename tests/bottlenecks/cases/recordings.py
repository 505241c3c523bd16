"""Recordings from a store; now and then one has to be fetched from further away."""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __init__(self, count=4000):
        rng = np.random.default_rng(25)
        self.recordings = rng.standard_normal((64, 500), dtype=np.float32)
        self.fetch_s = np.where(rng.random(count) < 0.01, 0.05, 0.001)

    def __len__(self):
        return len(self.fetch_s)

    def __getitem__(self, index):
        time.sleep(self.fetch_s[index])
        return torch.from_numpy(self.recordings[index % 64])


def make_loader():
    return DataLoader(Recordings(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)


def train_step(recordings):
    recordings.mean()
    time.sleep(0.1)  # the device computes
