import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def get_loader(seed=1000):
    data = TensorDataset(torch.arange(2000.0).reshape(500, 4), torch.arange(500) % 3)
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, seed=seed + rank)
    return DataLoader(data, batch_size=25, sampler=sampler)


def main():
    dist.init_process_group("nccl")
    model = DDP(torch.nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = get_loader()
    for epoch in range(10):
        loader.sampler.set_epoch(epoch)
        for values, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(values), targets).backward()
            optimizer.step()
