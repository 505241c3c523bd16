"""A project's loader as one finds it: plain PyTorch, files in class folders, labels in a table.

The code is in order. The data are not, until somebody says which of the files are at fault:

    headrace diagnose broken.py:make_loader --full
"""

import csv
import pathlib

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

ROOT = pathlib.Path(__file__).parent


class Digits(Dataset[tuple[torch.Tensor, int]]):
    """Handwritten digits: an image (3, 16, 16) in 0..1, and the digit."""

    classes = tuple("0123456789")

    def __init__(self) -> None:
        with (ROOT / "labels.csv").open(newline="", encoding="utf-8") as file:
            self.rows = [(row["path"], int(row["label"])) for row in csv.DictReader(file)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.rows[index]
        with Image.open(ROOT / path) as image:
            pixels = np.atleast_3d(np.asarray(image))
        return torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255, label


def make_loader() -> DataLoader[tuple[torch.Tensor, int]]:
    """Returns what a training loop would iterate."""
    return DataLoader(Digits(), batch_size=64, shuffle=True, num_workers=2)
