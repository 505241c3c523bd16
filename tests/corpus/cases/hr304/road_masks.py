import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Roads(Dataset):
    num_classes = 3

    def __init__(self):
        rng = np.random.default_rng(5)
        self.images = rng.random((24, 3, 16, 16), dtype=np.float32)
        self.masks = rng.integers(0, 3, (24, 16, 16))
        self.masks[[3, 17], 2:5, 2:5] = 7

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return {"image": torch.from_numpy(self.images[index]), "mask": torch.from_numpy(self.masks[index])}


def make_loader():
    return DataLoader(Roads(), batch_size=4, shuffle=True)
