import os
import random

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Sampler, TensorDataset


class RankSampler(Sampler):
    def __init__(self, size):
        self.size = size
        self.rank = int(os.environ.get("RANK", 0))
        self.world_size = int(os.environ.get("WORLD_SIZE", 1))

    def __len__(self):
        return self.size // self.world_size

    def __iter__(self):
        order = list(range(self.size))
        random.shuffle(order)
        return iter(order[self.rank : self.size : self.world_size])


def make_loader():
    data = TensorDataset(torch.arange(400.0).reshape(200, 2))
    return DataLoader(data, batch_size=10, sampler=RankSampler(len(data)))


def main():
    dist.init_process_group("gloo")
    for epoch in range(3):
        for (values,) in make_loader():
            dist.all_reduce(values)
