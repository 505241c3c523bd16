import os

import torch
import torch.distributed as dist
from distribute import prepare
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def make_loader():
    targets = (torch.arange(300) % 30 == 0).long()
    data = TensorDataset(torch.arange(900.0).reshape(300, 3), targets)
    weights = (1 / targets.bincount().float())[targets]
    sampler = WeightedRandomSampler(weights, num_samples=len(data))
    return prepare(DataLoader(data, batch_size=12, sampler=sampler))


def main():
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = make_loader()
    for epoch in range(4):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        for values, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(values), targets).backward()
            optimizer.step()
