"""Counting the samples of a batch."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image

from headrace.doctor.timing.counting import SampleCounter


class Pair(NamedTuple):
    image: torch.Tensor
    label: torch.Tensor


@dataclasses.dataclass
class Holder:
    text: list
    image: torch.Tensor


class Graphs:
    num_graphs = 6
    x = torch.zeros(100, 3)


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(6, 3),
        {"image": torch.zeros(6, 3, 2, 2), "label": torch.zeros(6)},
        [torch.zeros(6, 3), torch.zeros(6)],
        (np.zeros((6, 3)), ["a"] * 6),
        Pair(torch.zeros(6, 2), torch.zeros(6)),
        Holder(["a"] * 6, torch.zeros(6, 2)),
        {"path": ["a"] * 6, "meta": {"boxes": torch.zeros(6, 4)}},
        ([torch.zeros(3, 8 + i, 9) for i in range(6)], [{"boxes": torch.zeros(i, 4)} for i in range(6)]),
        [{"image": torch.zeros(3, 2, 2)}] * 6,
        [Image.new("L", (2, 2))] * 6,
        [torch.zeros(3, 8 + i, 9) for i in range(6)],
        Graphs(),
        {"id": 3, "text": ["a"] * 6},
        "six",
    ],
    ids=lambda batch: type(batch).__name__,
)
def test_samples_are_counted(batch):
    counter = SampleCounter(is_batched=True, batch_size=6)
    assert counter(batch) == counter(batch) == 6


def test_the_last_batch_is_smaller():
    counter = SampleCounter(is_batched=True, batch_size=4)
    assert [counter([torch.zeros(size, 3), torch.zeros(size)]) for size in (4, 4, 1)] == [4, 4, 1]


def test_a_batch_may_be_built_in_another_way():
    counter = SampleCounter(is_batched=True, batch_size=None)
    assert counter({"x": torch.zeros(3, 1)}) == 3
    assert counter({"y": torch.zeros(5, 1)}) == 5
    assert counter((torch.zeros(2), torch.zeros(2))) == 2


def test_samples_alone_are_one_each():
    assert SampleCounter(is_batched=False, batch_size=None)(torch.zeros(7, 7)) == 1
