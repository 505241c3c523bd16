import pathlib
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset


def write_logs(folder):
    for part in range(3):
        lines = [f"{part},{line},{(part * 100 + line) % 7}" for line in range(100)]
        (folder / f"part-{part}.csv").write_text("\n".join(lines))
    return sorted(folder.glob("*.csv"))


class LogLines(IterableDataset):
    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        for path in self.paths:
            with open(path) as lines:
                for line in lines:
                    part, number, label = line.strip().split(",")
                    yield torch.tensor([float(part), float(number)]), int(label)


def make_loader():
    paths = write_logs(pathlib.Path(tempfile.mkdtemp()))
    return DataLoader(LogLines(paths), batch_size=16, num_workers=2)
