import pathlib
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split


class Embeddings(Dataset):
    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return 30

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.folder / f"{index}.npy")), index % 2


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    for index in range(30):
        np.save(folder / f"{index}.npy", np.full(16, index, np.float32))
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 192\n"
    (folder / "12.npy").write_text(pointer)
    whole, _ = random_split(Embeddings(folder), [30, 0])
    return DataLoader(whole, batch_size=5)
