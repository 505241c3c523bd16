import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_loader():
    data = TensorDataset(torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), torch.arange(50) % 2)
    sampler = DistributedSampler(data, num_replicas=4, rank=1, shuffle=True)
    return DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)
