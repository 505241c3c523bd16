import pathlib
import struct
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

RECORD = struct.Struct("<i")


def pack(path, count=400, size=12):
    rng = np.random.default_rng(0)
    with open(path, "wb") as out:
        for label in range(count):
            out.write(RECORD.pack(label % 10))
            out.write(rng.integers(0, 255, (size, size), dtype=np.uint8).tobytes())


class PackedImages(Dataset):
    def __init__(self, path, count=400, size=12):
        self.count, self.size = count, size
        self.blob = open(path, "rb")

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.blob.seek(index * (RECORD.size + self.size**2))
        (label,) = RECORD.unpack(self.blob.read(RECORD.size))
        pixels = np.frombuffer(self.blob.read(self.size**2), np.uint8).reshape(1, self.size, self.size)
        return torch.from_numpy(pixels / 255).float(), label


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "train.bin"
    pack(path)
    return DataLoader(PackedImages(path), batch_size=32, shuffle=True, num_workers=2)
