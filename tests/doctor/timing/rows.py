"""Data sets and steps of the tests, in a module of their own so that they pickle."""

import time

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Rows(Dataset):
    """Pictures that take a while."""

    def __init__(self, size=64, sleep_s=0.0, fails_at=None):
        self.size, self.sleep_s, self.fails_at = size, sleep_s, fails_at

    def __len__(self):
        return self.size

    def __getitem__(self, row):
        if row == self.fails_at:
            raise ValueError(f"row {row} is broken")
        if self.sleep_s:
            time.sleep(self.sleep_s)
        return {"image": np.full((3, 8, 8), row % 256, np.uint8), "label": row}


class Lists(Rows):
    """Takes lists of rows as well."""

    def __getitem__(self, row):
        if isinstance(row, list):
            parts = [super(Lists, self).__getitem__(one) for one in row]
            return {
                "image": np.stack([part["image"] for part in parts]),
                "label": np.array([part["label"] for part in parts]),
            }
        return super().__getitem__(row)


class Wrong(Rows):
    """Takes lists of rows, and returns one sample."""

    def __getitem__(self, row):
        return super().__getitem__(row[0] if isinstance(row, list) else row)


class Stream(IterableDataset):
    """A stream that is shared out over its workers."""

    def __init__(self, size=64, sleep_s=0.0):
        self.size, self.sleep_s = size, sleep_s

    def __iter__(self):
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for row in range(first, self.size, step):
            if self.sleep_s:
                time.sleep(self.sleep_s)
            yield row


class Batches:
    """Any object that can be walked again and again."""

    batch_size = 4

    def __init__(self, size=20, sleep_s=0.0):
        self.size, self.sleep_s = size, sleep_s

    def __iter__(self):
        for _ in range(self.size):
            if self.sleep_s:
                time.sleep(self.sleep_s)
            yield {"x": torch.zeros(4, 2)}


def join_lists(samples):
    """A collate function of the user's own."""
    return {"label": torch.tensor([sample["label"] for sample in samples])}


def set_up(worker):
    """A worker_init_fn that needs the user's own data set."""
    assert get_worker_info().dataset.size
