import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, random_split


class Leaves(Dataset):
    def __init__(self, root, transform=None):
        self.paths = sorted(os.path.join(root, name) for name in os.listdir(root))
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        image = Image.open(self.paths[i]).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, i % 3


def augment(image):
    array = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
    if torch.rand(()) < 0.5:
        array = array.flip(-1)
    return array + 0.05 * torch.randn_like(array)


def make_loaders():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(1)
    for i in range(40):
        Image.fromarray(rng.integers(0, 255, (12, 12, 3), np.uint8)).save(os.path.join(root, f"leaf{i:03}.png"))
    leaves = Leaves(root, transform=augment)
    train, val = random_split(leaves, [30, 10], torch.Generator().manual_seed(0))
    return DataLoader(train, batch_size=6, shuffle=True), DataLoader(val, batch_size=6)
