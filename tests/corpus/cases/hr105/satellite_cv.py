import os
import tempfile

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, folder):
        self.folder, self.names = folder, sorted(os.listdir(folder))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        tile = cv2.imread(os.path.join(self.folder, self.names[index]), cv2.IMREAD_UNCHANGED)
        tile = np.clip(tile, 0, 255).astype(np.uint8)
        tile = cv2.resize(tile, (32, 32), interpolation=cv2.INTER_AREA)
        return torch.from_numpy(tile)[None].float().div(255), float(index)


def make_loader():
    folder = tempfile.mkdtemp()
    rng = np.random.default_rng(2)
    for number in range(8):
        tile = rng.gamma(2.0, 180.0, (64, 64)).astype(np.uint16)
        cv2.imwrite(os.path.join(folder, f"tile_{number}.tif"), tile)
    return DataLoader(Tiles(folder), batch_size=4)
