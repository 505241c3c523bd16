import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_loader():
    data = TensorDataset(torch.linspace(0, 1, 512).reshape(256, 2), torch.arange(256) % 2)
    sampler = DistributedSampler(
        data,
        num_replicas=int(os.environ.get("WORLD_SIZE", "1")),
        rank=int(os.environ.get("RANK", "0")),
        shuffle=True,
        drop_last=True,
    )
    return DataLoader(data, batch_size=16, sampler=sampler)


def main():
    dist.init_process_group("gloo")
    loader = make_loader()
    model = DistributedDataParallel(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        for values, targets in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(values), targets).backward()
            optimizer.step()
        print(epoch)


if __name__ == "__main__":
    main()
