"""Rows under wrappers are the rows that the wrappers read: held against a data set that says its own row."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, Dataset, Subset, random_split

from headrace.doctor.watch.drawn import Drawn, Roots, shared_rows


class Rows(Dataset):
    """A sample is the data set's name and the row."""

    def __init__(self, name, length):
        self.name, self.length = name, length

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        return self.name, range(self.length)[row]


class Transformed(Dataset):
    """A wrapper as people write it."""

    def __init__(self, subset):
        self.subset = subset

    def __len__(self):
        return len(self.subset)

    def __getitem__(self, row):
        return self.subset[row]


def wrapped(draw_from, data):
    """A data set under up to three wrappers."""
    dataset = draw_from
    for _ in range(data.draw(st.integers(0, 3))):
        kind = data.draw(st.sampled_from(["subset", "tensor subset", "concat", "transform"]))
        rows = data.draw(st.lists(st.integers(0, len(dataset) - 1), min_size=1, max_size=12))
        if kind == "subset":
            dataset = Subset(dataset, rows)
        elif kind == "tensor subset":
            dataset = Subset(dataset, torch.tensor(rows))
        elif kind == "concat":
            dataset = ConcatDataset([Subset(dataset, rows), dataset])
        else:
            dataset = Transformed(dataset)
    return dataset


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_marks_are_the_rows_that_the_samples_name(data):
    root = Rows("a", 10)
    dataset = wrapped(root, data)
    rows = data.draw(st.lists(st.integers(0, len(dataset) - 1), max_size=20))
    drawn = Drawn(Roots())
    mark = drawn.follow(dataset)
    mark(rows)
    expected = {dataset[row][1] for row in rows}
    marks = next(iter(drawn.rows.values()))
    assert set(np.flatnonzero(marks).tolist()) == expected
    assert drawn.count == len(expected)


def test_parts_of_a_random_split_share_nothing_and_the_whole_shares_all():
    root, roots = Rows("a", 50), Roots()
    first, second = random_split(root, [30, 20])
    seen = []
    for dataset in (first, second, root):
        drawn = Drawn(roots)
        drawn.follow(dataset)(range(len(dataset)))
        seen.append(drawn)
    assert seen[0].root == seen[1].root
    assert shared_rows(seen[0], seen[1]) == (0, ())
    number, few = shared_rows(seen[0], seen[2])
    assert (number, len(few)) == (30, 5)


def test_two_data_sets_share_nothing_unless_they_hold_the_same_files():
    roots = Roots()

    def draw(dataset):
        drawn = Drawn(roots)
        drawn.follow(dataset)([0, 1])
        return drawn

    assert shared_rows(draw(Rows("a", 5)), draw(Rows("b", 5)))[0] == 0
    folders = [Rows("a", 5), Rows("b", 5), Rows("c", 5)]
    for folder, name in zip(folders, "xxy", strict=True):
        folder.samples = [(f"{name}/{row}.png", 0) for row in range(5)]
    assert shared_rows(draw(folders[0]), draw(folders[1]))[0] == 2
    assert shared_rows(draw(folders[0]), draw(folders[2]))[0] == 0


def test_what_cannot_be_followed_is_not_known():
    class Endless(Rows):
        def __len__(self):
            return 10**9

    for dataset in ([1, 2, 3], Endless("a", 3)):
        drawn = Drawn(Roots())
        assert drawn.follow(dataset) is None
        assert not drawn.is_known
        assert drawn.count == 0


@pytest.mark.parametrize("wrap", [lambda root: root, lambda root: Subset(root, [0])])
def test_no_data_set_is_kept_alive(wrap):
    root, drawn = Rows("a", 3), Drawn(Roots())
    dataset = wrap(root)
    drawn.follow(dataset)([0])
    reference = weakref.ref(root)
    del root, dataset
    gc.collect()
    assert reference() is None
    assert drawn.count == 1


def test_positions_under_subsets_are_rows_of_the_data_set_itself():
    from torch.utils.data import Subset

    from headrace.doctor.watch.drawn import below_subsets

    rows = list(range(100, 130))
    outer = Subset(Subset(rows, range(10, 30)), [3, 1, 19])
    assert below_subsets(outer)([0, 1, 2]) == (13, 11, 29)
    assert below_subsets(rows)([4, 2]) == (4, 2)
