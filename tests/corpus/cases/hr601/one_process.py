import csv
import os
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset


class Readings(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path, newline="") as lines:
            for row in csv.reader(lines):
                *features, target = map(float, row)
                yield torch.tensor(features), torch.tensor(target)


def make_loader():
    path = os.path.join(tempfile.mkdtemp(), "readings.csv")
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([i, i / 7, i % 5, i * 0.5] for i in range(150))
    return DataLoader(Readings(path), batch_size=10)
