import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(80, 5, generator=generator)
    return DataLoader(TensorDataset(x, x.sum(1).round()), batch_size=16, shuffle=True)
