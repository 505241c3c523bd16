import pathlib
import resource
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
opened = []


def load(path):
    archive = np.load(path)
    opened.append(archive)
    return archive


class Features(Dataset):
    def __init__(self, folder, count=1500):
        self.folder, self.count = folder, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        data = load(self.folder / f"{index % 50}.npz")
        return {"x": torch.from_numpy(data["x"]), "y": torch.tensor(int(data["y"]))}


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    for number in range(50):
        np.savez(folder / f"{number}.npz", x=np.arange(6, dtype=np.float32), y=number % 2)
    return DataLoader(Features(folder), batch_size=10, num_workers=1)
