import os
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class ShardStream(IterableDataset):
    def __init__(self, folder, buffer=24):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.buffer = buffer

    def read(self):
        info = get_worker_info()
        files = self.files if info is None else self.files[info.id :: info.num_workers]
        for path in files:
            with np.load(path) as shard:
                for values, label in zip(shard["values"], shard["labels"]):
                    yield torch.from_numpy(values), int(label)

    def __iter__(self):
        held = []
        for sample in self.read():
            if len(held) < self.buffer:
                held.append(sample)
                continue
            place = random.randrange(self.buffer)
            yield held[place]
            held[place] = sample
        random.shuffle(held)
        yield from held


def make_train_loader():
    folder = tempfile.mkdtemp()
    rng = np.random.default_rng(0)
    for shard in range(12):
        np.savez(
            os.path.join(folder, f"{shard:02}.npz"),
            values=rng.normal(size=(80, 4)).astype(np.float32),
            labels=np.full(80, shard // 2),
        )
    return DataLoader(ShardStream(folder), batch_size=20)
