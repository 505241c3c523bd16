import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return torch.from_numpy(np.array(image)).permute(2, 0, 1), index % 4


def download(folder):
    rng = np.random.default_rng(0)
    for number in range(60):
        path = folder / f"{number:03d}.jpg"
        Image.fromarray(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)).save(path)
        if number == 41:
            path.write_bytes(path.read_bytes()[:900])


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    download(folder)
    return DataLoader(Photos(folder), batch_size=12, shuffle=True, num_workers=2)
