"""The first sample of each worker takes long: a table is made once per process."""

import threading
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Table(Dataset):
    def __init__(self):
        self.lock = threading.Lock()
        self.table = None

    def __len__(self):
        return 80

    def __getitem__(self, index):
        with self.lock:
            if self.table is None:
                time.sleep(1.5)
                self.table = np.linspace(0, 1, 80, dtype=np.float32)
        return torch.tensor([self.table[index]]), index % 2


def make_loader():
    return DataLoader(Table(), batch_size=8, num_workers=2)
