"""Documents, most of them short, a few as long as books."""

import random
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, count=6000):
        rng = random.Random(5)
        self.text = "".join(rng.choices("abcdefgh ", k=610_000))
        self.sizes = [600_000 if rng.random() < 0.01 else 6_000 for _ in range(count)]

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, index):
        counts = [0] * 128
        previous = 0
        for letter in self.text[index : index + self.sizes[index]]:
            previous = (previous * 7 + ord(letter)) % 128
            counts[previous] += 1
        return torch.tensor(counts, dtype=torch.float32)


def make_loader():
    return DataLoader(Documents(), batch_size=8, shuffle=True, num_workers=2, prefetch_factor=1)


def train_step(counts):
    counts.sum()
    time.sleep(0.008)  # the device computes
