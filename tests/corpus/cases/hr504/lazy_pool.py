from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self):
        self.pool = None

    def __len__(self):
        return 40

    def __getitem__(self, index):
        if self.pool is None:
            self.pool = ThreadPoolExecutor(max_workers=2)
        left, right = self.pool.map(float, (index, index + 1))
        return torch.tensor([left, right])


def make_loader():
    return DataLoader(Pairs(), batch_size=8, num_workers=2)
