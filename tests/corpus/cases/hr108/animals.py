import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class FolderImages(Dataset):
    def __init__(self, root):
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.samples = [
            (os.path.join(root, name, file), self.class_to_idx[name])
            for name in self.classes
            for file in sorted(os.listdir(os.path.join(root, name)))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        image = np.asarray(Image.open(path).convert("RGB"), np.float32) / 255
        return torch.from_numpy(image).permute(2, 0, 1), target


def write_images(root, counts):
    rng = np.random.default_rng(len(counts))
    for name, count in counts.items():
        os.makedirs(os.path.join(root, name))
        for i in range(count):
            Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8)).save(os.path.join(root, name, f"{i}.png"))


def make_loaders():
    root = tempfile.mkdtemp()
    write_images(os.path.join(root, "train"), {"bear": 8, "cat": 9, "deer": 7, "fox": 8})
    write_images(os.path.join(root, "val"), {"bear": 3, "deer": 4, "fox": 3})
    train = FolderImages(os.path.join(root, "train"))
    val = FolderImages(os.path.join(root, "val"))
    return DataLoader(train, batch_size=8, shuffle=True), DataLoader(val, batch_size=8)
