import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __init__(self, num_shards=8, per_shard=40):
        self.shards = [np.random.default_rng(shard).normal(size=(per_shard, 5)) for shard in range(num_shards)]

    def __iter__(self):
        info = get_worker_info()
        mine = self.shards if info is None else self.shards[info.id :: info.num_workers]
        for shard in mine:
            for row in shard:
                yield torch.from_numpy(row).float(), int(row[0] > 0)


def make_loader():
    return DataLoader(Shards(), batch_size=10, num_workers=2)
