"""Two views of each image, as in SimCLR."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class TwoCropsTransform:
    def __init__(self, base):
        self.base = base

    def __call__(self, x):
        return [self.base(x), self.base(x)]


def crop(x):
    top, left = torch.randint(0, 9, (2,)).tolist()
    x = x[:, top : top + 24, left : left + 24]
    return x + 0.1 * torch.randn_like(x)


class Unlabelled(Dataset):
    def __init__(self, transform):
        self.transform = transform
        self.images = np.random.default_rng(0).random((150, 3, 32, 32), np.float32)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(torch.from_numpy(self.images[index])), index


def make_loader():
    return DataLoader(Unlabelled(TwoCropsTransform(crop)), batch_size=30, shuffle=True, num_workers=2, drop_last=True)
