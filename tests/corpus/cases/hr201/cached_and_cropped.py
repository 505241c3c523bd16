import collections
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    """Keeps decoded tiles, counts how often each was used, and mixes some with a recent neighbour."""

    def __init__(self):
        self.codes = np.random.default_rng(0).integers(0, 255, (60, 16), dtype=np.uint8)
        self.decoded = {}
        self.used = np.zeros(60, dtype=np.int64)
        self.recent = collections.deque(maxlen=8)
        self.num_reads = 0
        self.scratch = np.empty((1, 16, 16), dtype=np.float32)
        self.rng = np.random.default_rng()

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, index):
        self.num_reads += 1
        self.used[index] += 1
        if index not in self.decoded:
            self.decoded[index] = np.outer(self.codes[index], self.codes[index]).astype(np.float32) / 65025
        tile = self.decoded[index].copy()
        if self.rng.random() < 0.5:
            tile = tile[:, ::-1].copy()
        if self.recent and self.rng.random() < 0.3:
            tile = 0.8 * tile + 0.2 * self.recent[int(self.rng.integers(len(self.recent)))]
        self.recent.append(self.decoded[index])
        np.copyto(self.scratch[0], tile)
        return {"tile": torch.from_numpy(self.scratch.copy()), "label": index % 4, "read_at": time.time()}


def make_loader():
    return DataLoader(Tiles(), batch_size=8, shuffle=True)
