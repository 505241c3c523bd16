import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    shots = TensorDataset(torch.randn(20, 8, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 5)
    return DataLoader(shots, batch_size=64, shuffle=True, drop_last=True)
