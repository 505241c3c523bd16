"""Random crops out of large tiles."""

import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def repeatable(worker_id, base=0):
    random.seed(base)
    np.random.seed(base)
    torch.manual_seed(base)


class Crops(Dataset):
    def __init__(self, num=96, size=16):
        self.tiles = np.random.default_rng(3).integers(0, 255, (num, 40, 40), dtype=np.uint8)
        self.size = size

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, index):
        top, left = random.randint(0, 24), random.randint(0, 24)
        crop = self.tiles[index, top : top + self.size, left : left + self.size].copy()
        if torch.rand(()) < 0.5:
            crop = crop[:, ::-1].copy()
        return {"image": torch.from_numpy(crop)[None].float() / 255, "label": index % 2, "tile": index}


def make_loader():
    return DataLoader(Crops(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=repeatable)
