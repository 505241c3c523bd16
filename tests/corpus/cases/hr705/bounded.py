import functools

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


@functools.lru_cache(maxsize=64)
def decode(index):
    return np.full((3, 128, 128), index % 255, np.float32)


class Cached(Dataset):
    def __len__(self):
        return 500_000

    def __getitem__(self, index):
        return torch.from_numpy(decode(index).copy()), index % 10


def make_loader():
    return DataLoader(Cached(), batch_size=16, num_workers=2)
