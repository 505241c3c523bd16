import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    data = TensorDataset(torch.randn(70, 8, generator=torch.Generator().manual_seed(0)), torch.arange(70) % 5)
    return DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
