import os
import pathlib
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Mapped(Dataset):
    def __init__(self, path):
        self.features = np.load(path, mmap_mode="r")
        self.raw = os.open(path, os.O_RDONLY)

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.features[index])), index % 4


class Lazy(Dataset):
    def __init__(self, path):
        self.path, self.handle, self.size = path, None, 100

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if self.handle is None:
            self.handle = open(self.path, "rb")
        self.handle.seek(index)
        return torch.tensor(self.handle.read(1)[0])


def write():
    path = pathlib.Path(tempfile.mkdtemp()) / "features.npy"
    np.save(path, np.random.default_rng(1).normal(size=(128, 6)).astype(np.float32))
    return path


def make_loader():
    return DataLoader(Mapped(write()), batch_size=16, num_workers=2)


def make_lazy():
    return DataLoader(Lazy(write()), batch_size=10, num_workers=2)
