import os
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

ROW = 16


class Records(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None

    def open(self):
        self.file = open(self.path, "rb")

    def __len__(self):
        return os.path.getsize(self.path) // (4 * ROW)

    def __getitem__(self, index):
        self.file.seek(4 * ROW * index)
        row = np.frombuffer(self.file.read(4 * ROW), dtype=np.float32)
        return torch.from_numpy(row[:-1].copy()), float(row[-1])


def worker_init_fn(worker_id):
    get_worker_info().dataset.open()


def make_loader():
    path = os.path.join(tempfile.mkdtemp(), "records.bin")
    np.random.default_rng(0).normal(size=(240, ROW)).astype(np.float32).tofile(path)
    return DataLoader(Records(path), batch_size=20, shuffle=True, num_workers=2, worker_init_fn=worker_init_fn)
