import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def prepare(loader):
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return loader
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=DistributedSampler(loader.dataset, shuffle=True),
        collate_fn=loader.collate_fn,
        num_workers=loader.num_workers,
    )
