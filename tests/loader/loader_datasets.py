"""Data sets as users write them, importable by worker processes that start by spawn."""

import dataclasses
import random
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Pair(NamedTuple):
    image: torch.Tensor
    label: int


class Tuples(Dataset):
    """(image, label) pairs."""

    def __init__(self, n=23):
        self.images = torch.arange(n * 6, dtype=torch.float32).reshape(n, 2, 3)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], index % 5


class Dicts(Tuples):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return {"image": image, "meta": {"label": label, "name": f"n{index}"}, "row": np.full(3, index)}


class Named(Tuples):
    def __getitem__(self, index):
        return Pair(*super().__getitem__(index))


class Bare(Tuples):
    def __getitem__(self, index):
        return self.images[index]


class Strings(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return f"sentence {index}"


class Batched(Tuples):
    """Reads a batch at once, as torch's fetcher allows."""

    def __getitems__(self, indices):
        return [Tuples.__getitem__(self, index) for index in indices]


class GloballyRandom(Dataset):
    """Augments with the global generators of all three libraries, as most code does."""

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.tensor([index, random.random(), np.random.rand(), torch.rand(()).item()], dtype=torch.float64)


class BatchedRandom(GloballyRandom):
    """Batched reads that draw: their draws would depend on the batch if nobody took care."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Broken(Tuples):
    """Raises at some rows."""

    def __init__(self, n=23, bad=(5,)):
        super().__init__(n)
        self.bad = set(bad)

    def __getitem__(self, index):
        if index in self.bad:
            raise TwoArguments("cannot read", index)
        return super().__getitem__(index)


class TwoArguments(Exception):
    """Does not unpickle: its constructor takes two arguments and passes on one."""

    def __init__(self, text, index):
        super().__init__(f"{text} row {index}")
        self.index = index


class Liar(Tuples):
    """Says that it has more samples than there are."""

    def __len__(self):
        return super().__len__() + 4


class Gaps(Tuples):
    """Returns None for bad samples."""

    def __getitem__(self, index):
        return None if index % 4 == 3 else super().__getitem__(index)


def without_none(samples):
    return torch.utils.data.default_collate([sample for sample in samples if sample is not None])


@dataclasses.dataclass
class Split(IterableDataset):
    """A stream that splits itself over workers."""

    n: int = 20

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for value in range(start, self.n, step):
            yield torch.tensor([value, random.random()], dtype=torch.float64)


class Unsplit(Split):
    """A stream that every worker yields whole."""

    def __iter__(self):
        yield from (torch.tensor(value) for value in range(self.n))


def decode(record):
    return {"x": np.asarray(record["x"], dtype=np.float32) / 7, "y": record["y"]}


def crop(sample, rng):
    return sample | {"x": np.roll(sample["x"], rng.integers(10)) + rng.normal(size=sample["x"].shape)}


def globally_random(sample):
    return sample | {"z": [random.random(), np.random.rand()]}
