import time

import torch
from torch.utils.data import DataLoader, Dataset


class Bucket(Dataset):
    """Objects of a remote store."""

    def __len__(self):
        return 2_000

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.full((64,), float(index)), index % 7


def make_loader():
    return DataLoader(Bucket(), batch_size=8, num_workers=12)
