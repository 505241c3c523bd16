import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class RandomObjectCrop:
    """Draws crops until one holds the object."""

    def __init__(self, size):
        self.size = size

    def __call__(self, image, mask):
        while True:
            top, left = np.random.randint(0, image.shape[0] - self.size, 2)
            if mask[top : top + self.size, left : left + self.size].any():
                return image[top : top + self.size, left : left + self.size]


class Objects(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.images = rng.random((40, 32, 32), np.float32)
        self.masks = rng.random((40, 32, 32)) > 0.9
        self.masks[27] = False
        self.crop = RandomObjectCrop(16)

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.from_numpy(self.crop(self.images[index], self.masks[index]).copy()), index % 3


def make_loader():
    return DataLoader(Objects(), batch_size=8, num_workers=2)
