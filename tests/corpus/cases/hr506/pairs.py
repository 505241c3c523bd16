"""Pairs of digits, drawn anew for each epoch."""

import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class DigitPairs(Dataset):
    def __init__(self, num=200):
        digits = load_digits()
        self.pixels = digits.data[:500].astype(np.float32) / 16
        self.labels = digits.target[:500]
        self.num = num
        self.noise = 0.0
        self.resample()

    def resample(self):
        self.pairs = [(random.randrange(500), random.randrange(500)) for _ in range(self.num)]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        one, other = self.pairs[index]
        pixels = np.stack([self.pixels[one], self.pixels[other]]) * (1 - self.noise)
        return torch.from_numpy(pixels.astype(np.float32)), int(self.labels[one] == self.labels[other])


def make_loader():
    return DataLoader(DigitPairs(), batch_size=10, num_workers=2, persistent_workers=True, shuffle=True)


def main():
    loader = make_loader()
    for epoch in range(20):
        loader.dataset.noise = 0.01 * epoch
        for pixels, same in loader:
            pass
        loader.dataset.resample()


if __name__ == "__main__":
    main()
