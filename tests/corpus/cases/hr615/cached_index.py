import json
import os
import pathlib
import tempfile

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

ROOT = pathlib.Path(tempfile.gettempdir(), f"clips-{os.getuid()}")


def build_index(path):
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps([{"clip": i, "label": i % 5} for i in range(240)]))
    partial.replace(path)
    if dist.is_initialized():
        dist.barrier()


class Clips(Dataset):
    def __init__(self):
        index = ROOT / "index.json"
        if not dist.is_initialized() or dist.get_rank() == 0:
            build_index(index)
        self.items = json.loads(index.read_text())

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        item = self.items[i]
        clip = torch.linspace(0, item["clip"], 64)
        return {"clip": clip, "label": item["label"]}


def get_loader():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    data = Clips()
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
