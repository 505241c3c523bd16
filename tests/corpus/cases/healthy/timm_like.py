"""timm's recipe: uint8 batches by a fast collate, RandAugment by random, mixup left to the loop."""
import random

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch.utils.data import DataLoader, Dataset


def fast_collate(batch):
    targets = torch.tensor([target for _, target in batch], dtype=torch.int64)
    tensor = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for number, (image, _) in enumerate(batch):
        tensor[number] += torch.from_numpy(image)
    return tensor, targets


class RandAugment:
    ops = [
        lambda image, m: ImageEnhance.Color(image).enhance(1 + m),
        lambda image, m: ImageEnhance.Contrast(image).enhance(1 - m),
        lambda image, m: image.rotate(30 * m),
        lambda image, m: ImageOps.solarize(image, int(256 * (1 - m))),
    ]

    def __call__(self, image):
        for op in random.choices(self.ops, k=2):
            image = op(image, random.random())
        return image


class ToNumpy:
    def __call__(self, image):
        return np.rollaxis(np.array(image, dtype=np.uint8), 2)


class Photos(Dataset):
    def __init__(self, augment):
        self.augment, self.to_numpy = augment, ToNumpy()
        rng = np.random.default_rng(5)
        self.pixels = rng.integers(0, 255, (48, 40, 40, 3), dtype=np.uint8)

    def __len__(self):
        return 192

    def __getitem__(self, index):
        image = Image.fromarray(self.pixels[index % 48])
        return self.to_numpy(self.augment(image)), index % 48 % 10


def make_loader():
    return DataLoader(
        Photos(RandAugment()), batch_size=24, shuffle=True, num_workers=2, collate_fn=fast_collate, drop_last=True, persistent_workers=True
    )
