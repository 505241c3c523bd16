"""Windows of accelerometer recordings, jittered and scaled for training."""

import pathlib
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ROOT = pathlib.Path(tempfile.mkdtemp())


def record(path, length=4000, seed=11):
    rng = np.random.default_rng(seed)
    np.save(path, rng.normal(size=(length, 3)).astype(np.float32).cumsum(axis=0) / 50)


class SensorWindows(Dataset):
    def __init__(self, path, width=64, seed=1234):
        self.signal = np.load(path)
        self.width = width
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.signal) // self.width

    def __getitem__(self, index):
        window = self.signal[index * self.width : (index + 1) * self.width].copy()
        window *= self.rng.uniform(0.9, 1.1)
        window += self.rng.normal(0, 0.01, window.shape).astype(np.float32)
        return {"window": torch.from_numpy(window), "activity": index % 4}


def make_loader():
    path = ROOT / "walk.npy"
    record(path)
    return DataLoader(SensorWindows(path), batch_size=8, shuffle=True, num_workers=2)
