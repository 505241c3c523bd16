"""Users' files, compared in real children."""

import textwrap

import pytest

from headrace.doctor.sameness.compare import Options, compare

HEADER = """
import json, os, random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset
import headrace as hr

class Pictures(Dataset):
    def __init__(self, size=40):
        self.size = size
    def __len__(self):
        return self.size
    def picture(self, row):
        return np.random.default_rng(row).integers(0, 256, (3, 6, 6), dtype=np.uint8)
    def __getitem__(self, row):
        return {"image": self.picture(row), "label": row % 7}

class Flipped(Pictures):
    def __getitem__(self, row):
        image = self.picture(row)
        if random.random() < 0.5:
            image = image[:, :, ::-1].copy()
        return {"image": image, "label": row % 7}
"""


@pytest.fixture
def write_file(tmp_path):
    """Writes a user's file; returns what makes a TARGET in it."""
    path = tmp_path / "loaders.py"

    def write(code):
        path.write_text(HEADER + textwrap.dedent(code))
        return lambda name: f"{path}:{name}"

    return write


@pytest.fixture
def compared(write_file):
    """Compares `right` and `other` of a file, or `right` under two numbers of workers."""

    def compare_(code, other="other", workers=(None, None), **options):
        target = write_file(code)
        return compare(target("right"), target(other), Options(**options), workers=workers)

    return compare_


@pytest.fixture
def verdicts():
    """The verdicts of all levels that say something, as one text."""

    def told(found):
        short = {"proven": "=", "differs": "!", "not comparable": "?"}
        return " ".join(f"{one.level}{short[one.verdict]}" for one in found.levels if one.verdict in short)

    return told
