import os
import random
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def write(root):
    rng = np.random.default_rng(9)
    for i in range(60):
        pixels = rng.integers(0, 255, (10, 10), np.uint8)
        Image.fromarray(pixels, "L").save(os.path.join(root, f"scan_{i:02}.png"))


class Scans(Dataset):
    def __init__(self, root, share, seed, jitter=False):
        names = sorted(os.listdir(root))
        random.Random(seed).shuffle(names)
        low, high = (round(part * len(names)) for part in share)
        self.paths = [os.path.join(root, name) for name in names[low:high]]
        self.jitter = jitter

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        pixels = torch.from_numpy(np.array(Image.open(self.paths[i]))).float() / 255
        if self.jitter:
            pixels = pixels + 0.02 * torch.randn_like(pixels)
        return {"scan": pixels[None], "path": self.paths[i]}


def make_loaders():
    root = tempfile.mkdtemp()
    write(root)
    return {
        "train": DataLoader(Scans(root, (0.0, 0.8), seed=1, jitter=True), batch_size=8, shuffle=True),
        "val": DataLoader(Scans(root, (0.8, 1.0), seed=2), batch_size=8),
    }
