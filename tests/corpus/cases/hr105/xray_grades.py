import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean)[:, None, None], torch.tensor(std)[:, None, None]

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std


class XrayGrades(Dataset):
    def __init__(self, folder, transform=None):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB").resize((56, 56))
        if self.transform is not None:
            for step in self.transform:
                image = step(image)
        return image, index % 5


def make_loader():
    folder = tempfile.mkdtemp()
    rng = np.random.default_rng(6)
    for number in range(10):
        base = np.linspace(100, 52_000, 64)[None, :] * np.linspace(0.2, 1, 64)[:, None]
        pixels = np.clip(base + rng.normal(0, 900, base.shape), 0, 65_535).astype(np.uint16)
        Image.fromarray(pixels).save(os.path.join(folder, f"knee_{number:03d}.png"))
    transform = [ToTensor(), Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    return DataLoader(XrayGrades(folder, transform), batch_size=5, shuffle=True)
