import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(40_000, 16, generator=generator)
    return DataLoader(TensorDataset(features, (features[:, 0] > 0).long()), batch_size=16, shuffle=True, num_workers=4)
