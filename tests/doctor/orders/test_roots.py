"""Rows followed to the data sets underneath; labels that are known without reading."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from headrace.doctor.subject.roots import cheap_labels, layers_of, root_rows


class Numbers(Dataset):
    def __init__(self, start, count):
        self.start, self.count = start, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.start + range(self.count)[i]


class Doubled(Dataset):
    def __init__(self, base):
        self.base = base

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        return 2 * self.base[i]


@st.composite
def nested(draw, depth=3):
    """A data set of numbers under some wrappers; its samples are the numbers themselves."""
    if depth == 0 or draw(st.booleans()):
        return Numbers(draw(st.integers(0, 1000)), draw(st.integers(1, 12)))
    inner = draw(nested(depth - 1))
    if draw(st.booleans()):
        return ConcatDataset([inner, draw(nested(depth - 1))])
    return Subset(inner, draw(st.lists(st.integers(0, len(inner) - 1), min_size=1, max_size=12)))


@given(nested(), st.data())
def test_the_rows_underneath_hold_the_same_samples(dataset, data):
    rows = data.draw(st.lists(st.integers(0, len(dataset) - 1), max_size=20))
    found = [root[int(row)] for root, inner in root_rows(dataset, np.array(rows, np.int64)) for row in inner]
    assert sorted(found) == sorted(dataset[row] for row in rows)


def test_a_wrapper_with_a_transform_is_looked_through():
    numbers = Numbers(0, 9)
    ((root, rows),) = root_rows(Doubled(Subset(numbers, [4, 5, 6])), np.array([0, 2]))
    assert root is numbers
    assert rows.tolist() == [4, 6]


def test_a_wrapper_of_another_length_is_the_end():
    class Windows(Doubled):
        def __len__(self):
            return len(self.base) - 2

    windows = Windows(Numbers(0, 9))
    ((root, rows),) = root_rows(windows, np.array([1]))
    assert root is windows
    assert rows.tolist() == [1]


def test_layers_are_told_from_the_outside_in():
    numbers = Numbers(0, 9)
    subset = Subset(numbers, [1])
    assert [id(one) for one in layers_of(Doubled(subset))][1:] == [id(subset), id(numbers)]


def labelled(kind):
    targets = [0, 0, 1, 1, 2, 2, 0, 1, 2, 0] * 3
    if kind == "tensors":
        return TensorDataset(torch.zeros(30, 2), torch.tensor(targets))
    if kind == "pairs":
        return [(torch.zeros(2), one) for one in targets]
    if kind == "dicts":
        found = Numbers(0, 30)
        found.records = [{"text": "a", "label": "abc"[one]} for one in targets]
        return found
    found = Numbers(0, 30)
    setattr(found, kind, targets if kind == "targets" else [("a.png", one) for one in targets])
    return found


@pytest.mark.parametrize("kind", ["tensors", "pairs", "dicts", "targets", "samples", "imgs"])
def test_labels_are_found_where_data_sets_keep_them(kind):
    labels = cheap_labels(labelled(kind))
    assert labels.tolist() == [0, 0, 1, 1, 2, 2, 0, 1, 2, 0] * 3
    part = cheap_labels(Subset(labelled(kind), list(range(0, 30, 2))))
    assert len(set(part.tolist())) == 3


def test_targets_that_are_no_classes_have_no_labels():
    assert cheap_labels(TensorDataset(torch.zeros(30, 2), torch.rand(30))) is None
    assert cheap_labels(TensorDataset(torch.zeros(30, 2), torch.arange(30))) is None
    assert cheap_labels(Numbers(0, 30)) is None
