"""Quickstart: images in memory, ToTensor, two loaders."""
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.array(image, np.float32) / 255)[None]


class FashionLike(Dataset):
    classes = ["T-Shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle Boot"]

    def __init__(self, train, transform=None):
        rng = np.random.default_rng(0 if train else 1)
        self.data = rng.integers(0, 255, (600 if train else 200, 28, 28), dtype=np.uint8)
        self.targets = rng.integers(0, 10, len(self.data)).tolist()
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image = Image.fromarray(self.data[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, int(self.targets[index])


def make_loaders():
    train = DataLoader(FashionLike(True, ToTensor()), batch_size=64, shuffle=True)
    test = DataLoader(FashionLike(False, ToTensor()), batch_size=64)
    return train, test
