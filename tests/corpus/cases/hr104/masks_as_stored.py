import os
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Plants(Dataset):
    def __init__(self, root):
        self.root = root
        self.names = sorted(name[:-4] for name in os.listdir(root) if name.endswith(".jpg"))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        base = os.path.join(self.root, self.names[index])
        image = torch.from_numpy(np.array(Image.open(base + ".jpg"))).permute(2, 0, 1).float() / 255
        mask = torch.from_numpy(np.array(Image.open(base + ".png"))).long()
        return image, mask


def make_loader():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(1)
    for number in range(8):
        pixels = np.zeros((40, 64, 3))
        pixels[:20] = 200
        mask = np.zeros((40, 64), np.uint8)
        mask[:20] = 1
        exif = Image.Exif()
        exif[0x0112] = 6 if number in (2, 5) else 1
        noisy = np.clip(pixels + rng.normal(20, 5, pixels.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(f"{root}/{number}.jpg", exif=exif)
        Image.fromarray(mask).save(f"{root}/{number}.png")
    return DataLoader(Plants(root), batch_size=4)
