import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

FOLDER = Path(tempfile.mkdtemp())


def save_photos():
    rng = np.random.default_rng(0)
    for number in range(30):
        size = (36, 48, 3) if number % 6 else (48, 36, 3)
        Image.fromarray(rng.integers(0, 255, size, dtype=np.uint8)).save(FOLDER / f"IMG_{number:04d}.jpg")


class Photos(Dataset):
    def __init__(self, folder, short_side=24):
        self.paths = sorted(folder.glob("*.jpg"))
        self.short_side = short_side

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        photo = Image.open(self.paths[index]).convert("RGB")
        scale = self.short_side / min(photo.size)
        photo = photo.resize((round(photo.width * scale), round(photo.height * scale)))
        return {"photo": torch.from_numpy(np.array(photo)).permute(2, 0, 1) / 255, "name": self.paths[index].name}


def make_loader():
    save_photos()
    return DataLoader(Photos(FOLDER), batch_size=6, shuffle=True)
