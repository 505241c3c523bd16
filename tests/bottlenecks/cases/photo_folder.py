"""Patches out of photographs."""

import pathlib
import random
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write_photos(folder, count=320, different=8):
    rng = np.random.default_rng(11)
    for number in range(different):
        coarse = rng.integers(0, 255, (30, 40, 3), dtype=np.uint8)
        photo = Image.fromarray(coarse).resize((1600, 1200), Image.Resampling.BICUBIC)
        photo.save(folder / f"{number:04}.jpg", quality=92)
    for number in range(different, count):
        (folder / f"{number:04}.jpg").hardlink_to(folder / f"{number % different:04}.jpg")
    return sorted(folder.glob("*.jpg"))


class Patches(Dataset):
    def __init__(self, paths, size=112):
        self.paths = paths
        self.size = size

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        photo = Image.open(self.paths[index]).convert("RGB")
        left = random.randrange(photo.width - self.size)
        top = random.randrange(photo.height - self.size)
        patch = np.asarray(photo.crop((left, top, left + self.size, top + self.size)))
        return torch.from_numpy(patch.copy()).permute(2, 0, 1).float() / 255, index % 10


def make_loader():
    paths = write_photos(pathlib.Path(tempfile.mkdtemp()))
    return DataLoader(Patches(paths), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(batch):
        patches, labels = batch
        loss = nn.functional.cross_entropy(model(patches), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
