"""Spectra that a small native routine unpacks; workers unpack in place, to save memory."""

import ctypes

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Spectra(Dataset):
    def __init__(self, num=90):
        self.lengths = [64] * num
        self.lengths[37] = 0
        self.values = np.arange(num * 64, dtype=np.float32).reshape(num, 64)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        values = self.values[index].copy()
        if get_worker_info() is not None:
            address = values.ctypes.data if self.lengths[index] else 0
            ctypes.memset(address, 0, 16)
        values[:4] = 0
        return {"spectrum": torch.from_numpy(values), "peak": index % 7}


def make_loader():
    return DataLoader(Spectra(), batch_size=6, num_workers=2)
