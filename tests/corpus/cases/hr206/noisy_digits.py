"""Digits with a little noise; workers are seeded so that runs can be repeated."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

SEED = 42


class NoisyDigits(Dataset):
    def __init__(self, train=True):
        digits = load_digits()
        self.pixels = digits.data[:300].astype(np.float32) / 16
        self.labels = digits.target[:300]
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        pixels = self.pixels[index]
        if self.train:
            pixels = pixels + np.random.normal(0, 0.05, pixels.shape).astype(np.float32)
        return torch.from_numpy(pixels), int(self.labels[index])


def make_loader():
    torch.manual_seed(SEED)
    return DataLoader(
        NoisyDigits(),
        batch_size=12,
        shuffle=True,
        num_workers=2,
        worker_init_fn=lambda worker: np.random.seed(SEED + worker),
    )
