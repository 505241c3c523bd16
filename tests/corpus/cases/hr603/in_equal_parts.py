"""A long table in equal parts, one for each worker."""

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Rows(IterableDataset):
    def __init__(self, num=203):
        self.num = num

    def __iter__(self):
        info = get_worker_info()
        start, end = 0, self.num
        if info is not None:
            part = self.num // info.num_workers
            start, end = info.id * part, (info.id + 1) * part
        for row in range(start, end):
            yield {"values": torch.tensor([row, row * row], dtype=torch.float32), "label": row % 4}


def make_loader():
    return DataLoader(Rows(), batch_size=8, num_workers=3)
