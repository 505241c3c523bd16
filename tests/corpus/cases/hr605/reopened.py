import os
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        info = get_worker_info()
        with open(self.path) as lines:
            for number, line in enumerate(lines):
                if info is None or number % info.num_workers == info.id:
                    yield torch.tensor([float(part) for part in line.split(",")])


def make_loader():
    path = os.path.join(tempfile.mkdtemp(), "lines.csv")
    with open(path, "w") as out:
        for i in range(200):
            out.write(f"{i},{i * 2},{i * 3}\n")
    return DataLoader(Lines(path), batch_size=16)
