"""Digits, mixed in pairs while they are joined."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

RANDOM = torch.Generator().manual_seed(99)


class MixPairs:
    def __init__(self, strength=0.4):
        self.strength = strength

    def __call__(self, samples):
        pixels = torch.stack([pixels for pixels, _ in samples])
        digits = torch.stack([digit for _, digit in samples])
        share = torch.rand(len(samples), 1, generator=RANDOM) * self.strength
        order = torch.randperm(len(samples), generator=RANDOM)
        return {
            "pixels": (1 - share) * pixels + share * pixels[order],
            "digit": digits,
            "other": digits[order],
            "share": share,
        }


def make_loader():
    digits = load_digits()
    data = TensorDataset(
        torch.from_numpy(digits.data[:400].astype(np.float32) / 16), torch.from_numpy(digits.target[:400])
    )
    return DataLoader(data, batch_size=16, shuffle=True, num_workers=2, collate_fn=MixPairs())
