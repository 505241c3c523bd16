"""Large pictures are reduced by a pool of threads that is made once."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Reduce:
    def __init__(self, threads=2):
        self.pool = ThreadPoolExecutor(threads)
        list(self.pool.map(time.sleep, [0.05] * 4 * threads))  # starts the threads

    def __call__(self, picture):
        if picture.shape[0] <= 32:
            return picture[::2, ::2]
        halves = self.pool.map(lambda half: half[::4, ::4], np.split(picture, 2))
        return np.concatenate(list(halves))[:16, :16]


class Pictures(Dataset):
    def __init__(self, num=72):
        self.sizes = [64 if number == 41 else 32 for number in range(num)]
        self.transform = Reduce()

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, index):
        size = self.sizes[index]
        picture = np.full((size, size), index, dtype=np.float32)
        return {"picture": torch.from_numpy(self.transform(picture).copy()), "label": index % 5}


def make_loader():
    return DataLoader(Pictures(), batch_size=6, num_workers=2)
