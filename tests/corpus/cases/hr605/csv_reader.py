import csv
import os
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset


class CsvRows(IterableDataset):
    def __init__(self, path):
        super().__init__()
        self.reader = csv.reader(open(path))

    def __iter__(self):
        for row in self.reader:
            *values, label = map(float, row)
            yield {"values": torch.tensor(values), "label": int(label)}


def make_loader():
    path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    with open(path, "w") as out:
        for i in range(300):
            out.write(f"{i},{i / 2},{i % 7},{i % 3}\n")
    return DataLoader(CsvRows(path), batch_size=32)
