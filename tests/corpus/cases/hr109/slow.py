import time

import torch
from torch.utils.data import DataLoader, Dataset


class Simulated(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        time.sleep(0.9 if index == 5 else 0.02)
        return torch.full((3,), float(index))


def make_loader():
    return DataLoader(Simulated(), batch_size=4)
