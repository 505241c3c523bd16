import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageOps
from torch.utils.data import DataLoader, Dataset

ROOT = Path(tempfile.mkdtemp()) / "shapes"


def draw_shapes():
    ROOT.mkdir(parents=True)
    for number in range(40):
        image = Image.new("RGB", (32, 32), (number * 5, 90, 200 - number * 3))
        ImageDraw.Draw(image).ellipse((number % 10, 4, number % 10 + 15, 20), fill=(255, 255, number))
        image.save(ROOT / f"{number:03d}.png")


class RandomFlipAndRotate:
    def __call__(self, image):
        if random.random() < 0.5:
            image = ImageOps.mirror(image)
        return image.rotate(random.uniform(-20, 20))


class Shapes(Dataset):
    def __init__(self, root, transform):
        self.paths = sorted(root.glob("*.png"))
        self.transform = transform
        self.store = {}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if index not in self.store:
            image = self.transform(Image.open(self.paths[index]).convert("RGB"))
            array = np.asarray(image, dtype=np.float32) / 255
            self.store[index] = torch.from_numpy(array).permute(2, 0, 1)
        return self.store[index], index % 2


def make_loader():
    draw_shapes()
    return DataLoader(Shapes(ROOT, RandomFlipAndRotate()), batch_size=8, shuffle=True)
