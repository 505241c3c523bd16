import os
import random
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset

SPECIES = ["ash", "birch", "oak"]


def write_photos(root, per_species=10):
    rng = np.random.default_rng(3)
    for name in SPECIES:
        os.makedirs(os.path.join(root, name))
        for number in range(per_species):
            pixels = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(os.path.join(root, name, f"{number:03d}.jpg"), quality=92)
    for name, number in (("birch", 4), ("oak", 2)):
        path = os.path.join(root, name, f"{number:03d}.jpg")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) // 2)


class LeafPhotos(Dataset):
    def __init__(self, root):
        self.items = []
        for label, name in enumerate(SPECIES):
            folder = os.path.join(root, name)
            self.items += [(os.path.join(folder, file), label) for file in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        path, label = self.items[index]
        try:
            image = Image.open(path).convert("RGB")
        except Exception:
            return self[random.randrange(len(self))]
        pixels = torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255
        return {"image": pixels, "label": label}


def make_loader():
    root = tempfile.mkdtemp()
    write_photos(root)
    photos = LeafPhotos(root)
    return DataLoader(Subset(photos, list(range(len(photos)))), batch_size=6, shuffle=True)
