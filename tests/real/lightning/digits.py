"""Digits drawn as small PNG files in train/ and test/, and a data set over them."""
import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image, ImageDraw


def draw_digits(count, split="train", seed=0):
    root = pathlib.Path(tempfile.gettempdir()) / "digits" / split
    if not root.exists():
        root.mkdir(parents=True)
        rng = np.random.default_rng(seed)
        for index in range(count):
            image = Image.new("L", (28, 28), int(rng.integers(0, 30)))
            place = (int(rng.integers(4, 14)), int(rng.integers(3, 12)))
            ImageDraw.Draw(image).text(place, str(index % 10), fill=int(rng.integers(180, 255)))
            noisy = np.asarray(image, np.int64) + rng.integers(0, 12, (28, 28))
            Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(root / f"{index:05d}_{index % 10}.png")
    return root


class Digits(torch.utils.data.Dataset):
    def __init__(self, root, transform):
        self.paths = sorted(root.glob("*.png"))
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        return self.transform(Image.open(path)), int(path.stem.rpartition("_")[2])
