"""Semantic segmentation with joint random crops and an ignore index."""
import random

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class RandomCropFlip:
    def __init__(self, size):
        self.size = size

    def __call__(self, image, mask):
        left = random.randint(0, image.width - self.size)
        top = random.randint(0, image.height - self.size)
        box = (left, top, left + self.size, top + self.size)
        image, mask = image.crop(box), mask.crop(box)
        if random.random() < 0.5:
            image, mask = image.transpose(Image.FLIP_LEFT_RIGHT), mask.transpose(Image.FLIP_LEFT_RIGHT)
        return image, mask


class Scenes(Dataset):
    num_classes = 6

    def __init__(self, augment):
        self.augment = augment

    def __len__(self):
        return 90

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        image = Image.fromarray(rng.integers(0, 255, (80, 100, 3), dtype=np.uint8))
        values = np.kron(rng.integers(0, 6, (8, 10), dtype=np.uint8), np.ones((10, 10), np.uint8))
        values[::10] = 255
        image, mask = self.augment(image, Image.fromarray(values))
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div(255)
        return {"image": pixels, "mask": torch.from_numpy(np.array(mask)).long()}


def make_loader():
    return DataLoader(Scenes(RandomCropFlip(64)), batch_size=8, shuffle=True, num_workers=2, drop_last=True)
