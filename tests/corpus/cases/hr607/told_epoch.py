import os

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_loader():
    data = TensorDataset(torch.linspace(0, 1, 512).reshape(256, 2), torch.arange(256) % 2)
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    return DataLoader(data, batch_size=16, sampler=DistributedSampler(data, num_replicas=world, rank=rank))


def run(step, first_epoch=0, last_epoch=8):
    loader = make_loader()
    for epoch in range(first_epoch, last_epoch):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        for batch in loader:
            step(batch)
