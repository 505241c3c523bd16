import os
import random
import tempfile

import numpy as np
import product_photos
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class RandomView:
    def __init__(self, side):
        self.side = side

    def __call__(self, image):
        scale = random.uniform(0.5, 1.0) ** 0.5
        width, height = int(image.width * scale), int(image.height * scale)
        left, top = random.randint(0, image.width - width), random.randint(0, image.height - height)
        return image.resize((self.side, self.side), Image.BILINEAR, box=(left, top, left + width, top + height))


class Views(Dataset):
    def __init__(self, root, transform):
        self.root, self.names, self.transform = root, sorted(os.listdir(root)), transform

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        with open(os.path.join(self.root, self.names[index]), "rb") as file:
            image = Image.open(file).convert("RGB")
        return torch.from_numpy(np.array(self.transform(image))), index % 3


def make_loader():
    root = tempfile.mkdtemp()
    product_photos.write_photos(root, size=(2000, 1500))
    return DataLoader(Views(root, RandomView(112)), batch_size=4, shuffle=True)
