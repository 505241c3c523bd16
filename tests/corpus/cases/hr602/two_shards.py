"""Text in two shard files, read by four workers."""

import pathlib
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __init__(self, paths):
        self.paths = sorted(paths)

    def __iter__(self):
        info = get_worker_info()
        mine = self.paths if info is None else self.paths[info.id :: info.num_workers]
        for path in mine:
            with open(path) as lines:
                for line in lines:
                    yield torch.tensor([float(word) for word in line.split()])


def make_loader():
    root = pathlib.Path(tempfile.mkdtemp())
    for shard in range(2):
        (root / f"part-{shard}.txt").write_text("".join(f"{shard} {row} {row + 1}\n" for row in range(150)))
    return DataLoader(Lines(root.glob("*.txt")), batch_size=10, num_workers=4)
