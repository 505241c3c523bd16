"""Blocks of one long token stream, as in small GPT trainers."""
import numpy as np
import pathlib
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    def __init__(self, path, block_size=64):
        self.data = np.memmap(path, dtype=np.uint16, mode="r")
        self.block_size = block_size

    def __len__(self):
        return (len(self.data) - 1) // self.block_size

    def __getitem__(self, idx):
        start = idx * self.block_size
        chunk = torch.from_numpy(self.data[start : start + self.block_size + 1].astype(np.int64))
        return chunk[:-1], chunk[1:]


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "train.bin"
    np.random.default_rng(0).integers(0, 65, 64 * 400 + 1, dtype=np.uint16).tofile(path)
    return DataLoader(Blocks(path), batch_size=12, shuffle=True, pin_memory=True, num_workers=0)
