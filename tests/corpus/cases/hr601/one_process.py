import torch
from torch.utils.data import DataLoader, IterableDataset


class Records(IterableDataset):
    def __init__(self, num):
        self.num = num

    def __iter__(self):
        for row in range(self.num):
            yield {"features": torch.arange(4) + row, "row": row}


def make_loader():
    return DataLoader(Records(96), batch_size=8)
