import itertools
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler, TensorDataset, WeightedRandomSampler


class Dealt(Sampler):
    def __init__(self, sampler, rank, world_size):
        self.sampler, self.rank, self.world_size = sampler, rank, world_size

    def __len__(self):
        return len(self.sampler) // self.world_size

    def __iter__(self):
        return itertools.islice(self.sampler, self.rank, len(self) * self.world_size, self.world_size)


def make_loader():
    targets = (torch.arange(300) % 30 == 0).long()
    data = TensorDataset(torch.arange(900.0).reshape(300, 3), targets)
    weights = (1 / targets.bincount().float())[targets]
    generator = torch.Generator().manual_seed(8)
    drawn = WeightedRandomSampler(weights, num_samples=len(data), generator=generator)
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    return DataLoader(data, batch_size=12, sampler=Dealt(drawn, rank, world))


def main():
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    loader = make_loader()
    for epoch in range(4):
        for values, targets in loader:
            torch.nn.functional.cross_entropy(model(values), targets).backward()
