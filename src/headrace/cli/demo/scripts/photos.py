"""A healthy loader: crops of two photographs, with random augmentation and two workers.

headrace diagnose photos.py:make_loader
"""

import pathlib

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

ROOT = pathlib.Path(__file__).parent / "photos"
SIZE = 56


class Photos(Dataset[tuple[torch.Tensor, int]]):
    """Random windows of the crops, mirrored half the time: an image (3, 56, 56) in 0..1, and which photograph."""

    classes = ("china", "flower")

    def __init__(self) -> None:
        self.paths = sorted(ROOT.glob("*/*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.paths[index]
        with Image.open(path) as image:
            pixels = np.array(image)
        top, left = (int(torch.randint(size - SIZE + 1, ())) for size in pixels.shape[:2])
        window = torch.from_numpy(pixels[top : top + SIZE, left : left + SIZE]).permute(2, 0, 1).float() / 255
        if torch.rand(()) < 1 / 2:
            window = window.flip(2)
        return window, self.classes.index(path.parent.name)


def make_loader() -> DataLoader[tuple[torch.Tensor, int]]:
    """Returns what a training loop would iterate."""
    return DataLoader(Photos(), batch_size=32, shuffle=True, num_workers=2)
