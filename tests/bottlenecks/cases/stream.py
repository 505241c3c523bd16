"""A stream out of shards, mixed in a buffer."""

import pathlib
import pickle
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def write_shards(folder, shards=8, records=400):
    rng = np.random.default_rng(21)
    for number in range(shards):
        with (folder / f"shard{number}.pkl").open("wb") as file:
            for key in range(records):
                pickle.dump((f"{number}-{key}", rng.standard_normal((3, 24, 24), dtype=np.float32)), file)
    return sorted(folder.glob("*.pkl"))


class Stream(IterableDataset):
    def __init__(self, shards, buffer=64):
        self.shards = shards
        self.buffer = buffer

    def records(self, shards):
        for shard in shards:
            with shard.open("rb") as file:
                while True:
                    try:
                        yield torch.from_numpy(pickle.load(file)[1])
                    except EOFError:
                        break

    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        rng = random.Random(first)
        held = []
        for record in self.records(self.shards[first::step]):
            held.append(record)
            if len(held) > self.buffer:
                yield held.pop(rng.randrange(len(held)))
        rng.shuffle(held)
        yield from held


def make_loader():
    return DataLoader(Stream(write_shards(pathlib.Path(tempfile.mkdtemp()))), batch_size=32, num_workers=2, persistent_workers=True)


def make_step():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 96, 3, padding=1), nn.ReLU(), nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(), nn.Conv2d(96, 3, 3, padding=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(pictures):
        loss = (model(pictures) - pictures).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train_step
