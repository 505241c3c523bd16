import os

import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def make_loaders():
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    train = TensorDataset(torch.arange(606.0).reshape(303, 2), torch.arange(303) % 2)
    val = TensorDataset(-torch.arange(202.0).reshape(101, 2), torch.arange(101) % 2)
    mine = Subset(val, range(rank, len(val), world))
    return (
        DataLoader(train, batch_size=16, sampler=DistributedSampler(train, world, rank)),
        DataLoader(mine, batch_size=16),
    )


def run(step, epochs=3):
    train, _ = make_loaders()
    for epoch in range(epochs):
        train.sampler.set_epoch(epoch)
        for batch in train:
            step(batch)
