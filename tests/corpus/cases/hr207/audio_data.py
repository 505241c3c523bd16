import random

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Waves(Dataset):
    def __init__(self):
        self.waves = [torch.sin(torch.arange(500) * (1 + i) / 50) for i in range(64)]

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        start = random.randrange(100)
        return {"wave": self.waves[i][start : start + 400], "label": i % 10}


def make_loader():
    data = Waves()
    ready = dist.is_available() and dist.is_initialized()
    sampler = DistributedSampler(
        data, num_replicas=dist.get_world_size() if ready else 1, rank=dist.get_rank() if ready else 0
    )
    return DataLoader(data, batch_size=8, sampler=sampler, num_workers=2, drop_last=True)
