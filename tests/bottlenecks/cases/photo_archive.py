"""Photographs for a classifier; some are panoramas."""

import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write_photos(folder, count=600):
    rng = np.random.default_rng(13)
    coarse = Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8))
    coarse.resize((1200, 900), Image.Resampling.BICUBIC).save(folder / "photo.jpg", quality=92)
    coarse.resize((4800, 2700), Image.Resampling.BICUBIC).save(folder / "panorama.jpg", quality=92)
    paths = []
    for number in range(count):
        kind = "panorama" if rng.random() < 0.01 else "photo"
        path = folder / f"{number:04}.jpg"
        path.hardlink_to(folder / f"{kind}.jpg")
        paths.append(path)
    return paths


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as photo:
            photo = photo.convert("RGB").resize((96, 96), Image.Resampling.NEAREST)
        return torch.from_numpy(np.asarray(photo).copy()).permute(2, 0, 1).float() / 255


def make_loader():
    paths = write_photos(pathlib.Path(tempfile.mkdtemp()))
    return DataLoader(Photos(paths), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(photos):
        loss = model(photos).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
