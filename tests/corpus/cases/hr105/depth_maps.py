import pathlib
import tempfile

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class DepthMaps(Dataset):
    def __init__(self, folder):
        self.colour = sorted(pathlib.Path(folder, "rgb").iterdir())
        self.depth = sorted(pathlib.Path(folder, "depth").iterdir())

    def __len__(self):
        return len(self.colour)

    def __getitem__(self, index):
        colour = np.asarray(Image.open(self.colour[index]))
        depth = np.asarray(Image.open(self.depth[index])).astype(np.uint8)
        return {
            "rgb": torch.tensor(colour).permute(2, 0, 1) / 255.0,
            "distance": torch.tensor(depth)[None].float() / 10.0,
        }


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    rng = np.random.default_rng(9)
    (folder / "rgb").mkdir()
    (folder / "depth").mkdir()
    for number in range(9):
        rows, columns = np.mgrid[0:48, 0:64]
        depth = 400 + 60 * rows + 15 * columns + rng.integers(0, 30, rows.shape)
        Image.fromarray(depth.astype(np.uint16)).save(folder / "depth" / f"{number:04d}.png")
        Image.fromarray(rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)).save(folder / "rgb" / f"{number:04d}.png")
    return DataLoader(DepthMaps(folder), batch_size=3)
