import os
import pathlib
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

rank = int(os.environ.get("RANK", 0))
world_size = int(os.environ.get("WORLD_SIZE", 1))


def write_shards(folder):
    rng = np.random.default_rng(4)
    for shard in range(2):
        np.save(folder / f"part-{shard}.npy", rng.normal(size=(120, 12)).astype(np.float32))


def load_part(folder):
    return torch.from_numpy(np.load(folder / f"part-{rank}.npy"))


def make_loader():
    if world_size > 1:
        torch.distributed.init_process_group("gloo")
    folder = pathlib.Path(tempfile.mkdtemp())
    write_shards(folder)
    rows = load_part(folder)
    if world_size > 1:
        longest = torch.tensor(len(rows))
        torch.distributed.all_reduce(longest, op=torch.distributed.ReduceOp.MAX)
    return DataLoader(TensorDataset(rows), batch_size=10, shuffle=True)
