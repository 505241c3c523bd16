import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_val_loader(rank=0, world_size=4):
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(101, 6, generator=generator), torch.arange(101) % 3)
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank, shuffle=False)
    return DataLoader(data, batch_size=16, sampler=sampler)


@torch.no_grad()
def validate(model):
    correct = total = torch.zeros(())
    for values, targets in make_val_loader(dist.get_rank(), dist.get_world_size()):
        correct = correct + (model(values).argmax(1) == targets).sum()
        total = total + len(targets)
    dist.all_reduce(correct)
    dist.all_reduce(total)
    return correct / total
