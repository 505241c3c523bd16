"""Pictures inside one zip archive."""

import io
import pathlib
import tempfile
import zipfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)
        self.names = sorted(self.archive.namelist())

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        pixels = np.load(io.BytesIO(self.archive.read(self.names[index])))
        return {"image": torch.from_numpy(pixels).float() / 255, "label": index % 10}


def make_loader():
    path = pathlib.Path(tempfile.mkdtemp()) / "pictures.zip"
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(200):
            buffer = io.BytesIO()
            np.save(buffer, rng.integers(0, 255, (3, 48, 48), dtype=np.uint8))
            archive.writestr(f"{number:05}.npy", buffer.getvalue())
    return DataLoader(Archive(path), batch_size=8, shuffle=True, num_workers=2)
