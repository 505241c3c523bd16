import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Kernels(Dataset):
    """Images projected by a dense kernel."""

    def __init__(self):
        self.basis = np.random.default_rng(2).normal(size=(500, 500)).astype(np.float32)

    def __len__(self):
        return 2_000

    def __getitem__(self, index):
        image = np.roll(self.basis, index % 500, axis=0)
        for _ in range(4):
            image = image @ self.basis / 25
        return {"image": torch.from_numpy(image[:64, :64].copy()), "target": index % 3}


def make_loader():
    return DataLoader(Kernels(), batch_size=4, num_workers=3)
