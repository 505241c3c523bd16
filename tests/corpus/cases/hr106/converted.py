import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def to_tensor(image):
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[:, :, None]
    return torch.from_numpy(array.copy()).permute(2, 0, 1).float() / 255


class Birds(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.iterdir())

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return to_tensor(Image.open(self.files[index]).convert("RGB")), index % 5


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    for number in range(50):
        pixels = rng.integers(0, 255, (16, 16) if number == 22 else (16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"bird_{number:03d}.png")
    return DataLoader(Birds(folder), batch_size=10, num_workers=2)
