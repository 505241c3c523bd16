import io
import pathlib
import tempfile
import zipfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split


class Archive:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.names = sorted(self.zip.namelist())

    def load(self, name):
        return np.load(io.BytesIO(self.zip.read(name)))


class Spectra(Dataset):
    def __init__(self, path):
        self.archive = Archive(path)

    def __len__(self):
        return len(self.archive.names)

    def __getitem__(self, index):
        name = self.archive.names[index]
        return {"spectrum": torch.from_numpy(self.archive.load(name)), "name": name}


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "spectra.zip"
    with zipfile.ZipFile(path, "w") as out:
        for number in range(120):
            buffer = io.BytesIO()
            np.save(buffer, np.random.default_rng(number).normal(size=64).astype(np.float32))
            out.writestr(f"{number:04d}.npy", buffer.getvalue())
    train, _ = random_split(Spectra(path), [100, 20], generator=torch.Generator().manual_seed(0))
    return DataLoader(train, batch_size=10, num_workers=3)
