import os
import tempfile

import numpy as np
import torch
from PIL import Image, ImageFile
from torch.utils.data import DataLoader, Dataset

ImageFile.LOAD_TRUNCATED_IMAGES = True


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, value):
        for step in self.steps:
            value = step(value)
        return value


class Resize:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        return image.resize(self.size)


def to_tensor(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div(255)


class StreetFrames(Dataset):
    def __init__(self, root, transform):
        self.paths = [os.path.join(root, name) for name in sorted(os.listdir(root))]
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return self.transform(image.convert("RGB")), index % 2


def make_loader():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(1)
    for number in range(20):
        path = os.path.join(root, f"frame_{number:05d}.jpg")
        Image.fromarray(rng.integers(0, 256, (90, 120, 3), dtype=np.uint8)).save(path)
        if number == 13:
            size = os.path.getsize(path)
            with open(path, "r+b") as file:
                file.truncate(size * 2 // 3)
    return DataLoader(StreetFrames(root, Compose(Resize((64, 48)), to_tensor)), batch_size=4)
