"""Five shards of unequal length for two workers."""

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

LENGTHS = (120, 90, 140, 60, 100)


class Shards(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        for shard in range(worker, len(LENGTHS), workers):
            for row in range(LENGTHS[shard]):
                yield {"x": torch.tensor([float(shard), float(row)]), "y": row % 2}


def make_loader():
    return DataLoader(Shards(), batch_size=10, num_workers=2)
