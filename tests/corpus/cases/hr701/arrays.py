import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    def __init__(self, count=300_000):
        self.boxes = np.arange(count * 4, dtype=np.float32).reshape(count, 4)
        self.paths = np.char.add("train/", np.arange(count).astype(str))

    def __len__(self):
        return len(self.boxes)

    def __getitem__(self, index):
        x = torch.from_numpy(self.boxes[index])
        for _ in range(40):
            x = torch.sin(x)
        return x, len(self.paths[index])


def make_loader():
    return DataLoader(Boxes(), batch_size=32, shuffle=True, num_workers=2)
