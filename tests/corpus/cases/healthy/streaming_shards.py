"""Shards of JSON lines, dealt out to workers, with a shuffle buffer seeded per epoch."""
import json
import pathlib
import random
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class JsonShards(IterableDataset):
    def __init__(self, paths, buffer_size=64):
        self.paths, self.buffer_size, self.epoch = paths, buffer_size, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        rng = random.Random(f"{torch.initial_seed()}-{self.epoch}")
        paths = list(self.paths)
        random.Random(self.epoch).shuffle(paths)
        buffer = []
        for path in paths[worker::workers]:
            with open(path) as lines:
                for line in lines:
                    row = json.loads(line)
                    buffer.append({"x": torch.tensor(row["x"]), "y": row["y"]})
                    if len(buffer) >= self.buffer_size:
                        yield buffer.pop(rng.randrange(len(buffer)))
        rng.shuffle(buffer)
        yield from buffer


def make_loader():
    folder = pathlib.Path(tempfile.mkdtemp())
    for shard in range(8):
        rows = [json.dumps({"x": [shard + 0.5, float(n)], "y": (n * 7 + shard) % 3}) for n in range(60)]
        (folder / f"{shard}.jsonl").write_text("\n".join(rows))
    return DataLoader(JsonShards(sorted(folder.glob("*.jsonl"))), batch_size=16, num_workers=2)
