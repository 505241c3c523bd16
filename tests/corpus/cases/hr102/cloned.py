import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __init__(self, root):
        self.files = sorted(root.rglob("*.png"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        pixels = np.array(Image.open(self.files[i]), dtype=np.float32)
        return {"scan": torch.from_numpy(pixels)[None] / 255, "name": self.files[i].stem}


def checkout(root):
    rng = np.random.default_rng(1)
    for n in range(40):
        path = root / f"case_{n:03d}.png"
        if n % 10 == 3:
            path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{n:064x}\nsize 48213\n")
        else:
            Image.fromarray(rng.integers(0, 255, (24, 24), dtype=np.uint8)).save(path)


def make_loader():
    root = pathlib.Path(tempfile.mkdtemp())
    checkout(root)
    return DataLoader(Scans(root), batch_size=8)
