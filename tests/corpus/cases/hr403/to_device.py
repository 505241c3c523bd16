import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Sensors(Dataset):
    def __init__(self):
        self.values = np.random.default_rng(0).normal(size=(90, 7)).astype(np.float32)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        x = torch.from_numpy(self.values[index]).to(device)
        return {"x": x, "y": int(self.values[index, 0] > 0)}


def make_loader():
    return DataLoader(Sensors(), batch_size=9, num_workers=2)
