import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

SHARDS = {"a": 120, "b": 80, "c": 120, "d": 90}


class Shards(IterableDataset):
    def __init__(self, rank, world_size):
        self.names = sorted(SHARDS)[rank::world_size]

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        names = self.names if info is None else self.names[info.id :: info.num_workers]
        for name in names:
            for number in range(SHARDS[name]):
                yield torch.tensor([ord(name), number], dtype=torch.float32)


def make_loader():
    shards = Shards(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))
    return DataLoader(shards, batch_size=10, num_workers=2)


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for values in make_loader():
        optimizer.zero_grad()
        model(values).mean().backward()
        optimizer.step()
