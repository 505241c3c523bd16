import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.full((1, 128, 128, 64), float(index % 10)), index % 2


def make_loader():
    return DataLoader(Volumes(), batch_size=8, num_workers=4, prefetch_factor=1000)
