"""A stream whose workers end as soon as they have no shard, which is as it should be."""

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        for shard in range(worker, 6, workers):
            for number in range(40):
                yield torch.tensor([shard, number], dtype=torch.float32), shard % 2


def make_loader():
    return DataLoader(Shards(), batch_size=8, num_workers=2)
