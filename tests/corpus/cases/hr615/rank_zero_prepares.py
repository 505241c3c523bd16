import json
import os
import pathlib
import tempfile

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

ROOT = pathlib.Path(tempfile.gettempdir(), f"notes-{os.getuid()}")


def prepare(path):
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps([i % 7 for i in range(240)]))
    partial.replace(path)


class Notes(Dataset):
    def __init__(self, path):
        self.labels = json.loads(path.read_text())

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.full((16,), float(i)), self.labels[i]


def get_loader(epoch=0):
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    path = ROOT / "labels.json"
    if dist.get_rank() == 0:
        prepare(path)
    dist.barrier()
    data = Notes(path)
    sampler = DistributedSampler(data, seed=1)
    sampler.set_epoch(epoch)
    return DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)


def main():
    for epoch in range(10):
        for batch, label in get_loader(epoch):
            print(batch.shape, label)
