"""Leaf pictures in class folders."""

import pathlib
import tempfile

import numpy as np
import torch
from leaf_augment import Brightness, Compose, Mirror
from PIL import Image
from torch.utils.data import DataLoader, Dataset, random_split


def write_pictures(root, per_class=24):
    rng = np.random.default_rng(5)
    for name in ("birch", "maple", "oak"):
        (root / name).mkdir(parents=True)
        for number in range(per_class):
            pixels = rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number:03}.png")


class Leaves(Dataset):
    def __init__(self, root, transform):
        self.classes = sorted(folder.name for folder in root.iterdir())
        self.paths = sorted(root.glob("*/*.png"))
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        picture = self.transform(Image.open(path).convert("RGB"))
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
        return pixels, self.classes.index(path.parent.name)


def make_loader():
    root = pathlib.Path(tempfile.mkdtemp()) / "leaves"
    write_pictures(root)
    leaves = Leaves(root, Compose([Mirror(0.5), Brightness(0.7, 1.3)]))
    train, _ = random_split(leaves, [60, 12], generator=torch.Generator().manual_seed(3))
    return DataLoader(train, batch_size=6, shuffle=True, num_workers=3, drop_last=True)
