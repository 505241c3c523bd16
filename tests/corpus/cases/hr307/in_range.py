import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self):
        self.values = np.random.default_rng(4).random((80, 6), np.float32)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return {"values": torch.from_numpy(self.values[index]), "label": index % 3}


def make_loader():
    return DataLoader(Readings(), batch_size=10)
