import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ROOT = Path(tempfile.mkdtemp())
WAVELENGTHS = 64


def write_spectra():
    rng = np.random.default_rng(3)
    for sample in range(48):
        baseline = rng.uniform(0.5, 2.0)
        peaks = np.exp(-(((np.arange(WAVELENGTHS) - rng.integers(10, 50)) / 4.0) ** 2))
        np.save(ROOT / f"spectrum_{sample:03d}.npy", (baseline + peaks).astype(np.float32))


class Spectra(Dataset):
    def __init__(self, root):
        self.files = sorted(root.glob("*.npy"))
        self.offset = np.float32(0.3)
        self.loaded = {}

    def __len__(self):
        return len(self.files)

    def _load(self, index):
        if index not in self.loaded:
            self.loaded[index] = np.load(self.files[index])
        return self.loaded[index]

    def __getitem__(self, index):
        spectrum = self._load(index)
        spectrum -= self.offset
        spectrum /= 1.7
        return {"spectrum": torch.from_numpy(spectrum.copy()), "label": int(spectrum.argmax() > 30)}


def make_loader():
    write_spectra()
    return DataLoader(Spectra(ROOT), batch_size=8, shuffle=True)
