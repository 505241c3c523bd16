import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Signals(Dataset):
    def __init__(self, values, augment):
        self.values, self.augment = values, augment

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        values = self.values[i]
        return (values + 0.1 * torch.randn(4) if self.augment else values), i % 3


def get_loaders():
    if "RANK" in os.environ:
        dist.init_process_group("nccl")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(17 + int(os.environ.get("RANK", 0)))
    values = torch.arange(1536.0).reshape(384, 4)
    train, val = Signals(values[:320], True), Signals(values[320:], False)
    sampler = DistributedSampler(train) if dist.is_initialized() else None
    return (
        DataLoader(train, batch_size=16, shuffle=sampler is None, sampler=sampler, drop_last=True),
        DataLoader(val, batch_size=16),
    )


def main():
    train, _ = get_loaders()
    model = DDP(torch.nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        if isinstance(train.sampler, DistributedSampler):
            train.sampler.set_epoch(epoch)
        for values, targets in train:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(values), targets).backward()
            optimizer.step()
