import os
import tempfile

import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Parts(Dataset):
    def __init__(self, root):
        self.root = root
        self.parts = sorted(name for name in os.listdir(root) if name.endswith(".png"))

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, index):
        path = os.path.join(self.root, self.parts[index])
        image = cv2.imread(path.replace(".png", ".bmp"))
        labels = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
        return {
            "image": torch.from_numpy(image).permute(2, 0, 1).float(),
            "mask": torch.from_numpy(labels.astype(np.int64)),
        }


def make_loader():
    root = tempfile.mkdtemp()
    rng = np.random.default_rng(3)
    palette = [0, 0, 0, 230, 25, 75, 60, 180, 75, 255, 225, 25] + [0] * (252 * 3)
    for number in range(8):
        mask = np.zeros((30, 40), np.uint8)
        mask[5:15] = 1
        mask[10:25, 20:] = 2
        mask[26:] = 3
        image = Image.fromarray(mask)
        image.putpalette(palette)
        image.save(f"{root}/part{number}.png")
        cv2.imwrite(f"{root}/part{number}.bmp", rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
    return DataLoader(Parts(root), batch_size=4)
