import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FOLDER = Path(tempfile.mkdtemp())


def write_log():
    rng = np.random.default_rng(12)
    for hour in range(40):
        values = rng.normal(20, 2, (30, 4))
        if hour in (5, 22):
            values[10:14, 2] = np.nan
        np.savetxt(FOLDER / f"hour_{hour:02d}.csv", values, delimiter=",")


class Hours(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.csv"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        values = np.loadtxt(self.files[index], delimiter=",", dtype=np.float32)
        return torch.from_numpy((values - 20) / 2), torch.tensor(index % 24)


def make_loader():
    write_log()
    return DataLoader(Hours(FOLDER), batch_size=8, shuffle=True)
