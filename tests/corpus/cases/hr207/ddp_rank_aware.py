import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Patches(Dataset):
    def __init__(self):
        self.images = torch.arange(96 * 20 * 20, dtype=torch.float32).reshape(96, 1, 20, 20)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        top, left = torch.randint(0, 5, (2,)).tolist()
        return self.images[i, :, top : top + 16, left : left + 16], i % 4


def make_loader():
    rank = int(os.environ.get("RANK", 0))
    torch.manual_seed(1234 + rank)
    data = Patches()
    sampler = DistributedSampler(data, num_replicas=int(os.environ.get("WORLD_SIZE", 1)), rank=rank, seed=1)
    return DataLoader(data, batch_size=8, sampler=sampler, num_workers=2)


def main():
    dist.init_process_group("gloo")
    loader = make_loader()
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        loader.sampler.set_epoch(epoch)
        for images, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), targets).backward()
            optimizer.step()
