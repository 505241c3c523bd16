"""The small data set that bug reports for Lightning use."""
import torch
from torch.utils.data import DataLoader, Dataset


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.len = length
        self.data = torch.randn(length, size)

    def __getitem__(self, index):
        return self.data[index]

    def __len__(self):
        return self.len


def make_loaders():
    return {"train": DataLoader(RandomDataset(32, 64), batch_size=2), "val": DataLoader(RandomDataset(32, 64), batch_size=2)}
