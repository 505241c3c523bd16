import pathlib
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Blocks(Dataset):
    """Fixed-size float records in one file."""

    def __init__(self, path, width=8):
        self.path, self.width = path, width
        self.file = open(path, "rb")
        self.count = path.stat().st_size // (4 * width)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.file.seek(index * 4 * self.width)
        row = np.frombuffer(self.file.read(4 * self.width), np.float32)
        return torch.from_numpy(row.copy()), index % 3


def reopen(_):
    dataset = get_worker_info().dataset
    dataset.file = open(dataset.path, "rb")


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "blocks.f32"
    np.arange(8 * 200, dtype=np.float32).tofile(path)
    return DataLoader(Blocks(path), batch_size=20, num_workers=2, worker_init_fn=reopen)
