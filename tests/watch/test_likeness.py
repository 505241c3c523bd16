"""Data that are made twice in the same way are alike; data that differ anywhere that is looked at are not."""

from __future__ import annotations

import copy
import pathlib
import types

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import BatchSampler, ConcatDataset, Dataset, SequentialSampler, Subset, SubsetRandomSampler

from headrace.doctor.watch import likeness
from headrace.doctor.watch.likeness import likeness_of


class Held(Dataset):
    """A data set that holds what it is given."""

    def __init__(self, **held):
        vars(self).update(held)

    def __len__(self):
        return 10


PLAIN = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats()
VALUES = (
    PLAIN
    | st.lists(PLAIN)
    | st.lists(st.tuples(PLAIN, PLAIN))
    | st.lists(st.integers(0, 99)).map(np.array)
    | st.lists(st.floats(width=32)).map(lambda values: torch.tensor(values, dtype=torch.float32))
    | st.lists(st.text(max_size=5), min_size=1).map(lambda values: np.array(values, dtype=object))
    | st.dictionaries(st.text(max_size=5), PLAIN)
    | st.builds(pathlib.PurePosixPath, st.text("abc", min_size=1))
)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from("abcd"), VALUES))
def test_two_objects_that_hold_the_same_are_alike(held):
    first, second = Held(**held), Held(**copy.deepcopy(held))
    assert likeness_of(first).is_like(likeness_of(second))
    assert likeness_of(Subset(first, [1, 2])).is_like(likeness_of(Subset(second, [1, 2])))


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=likeness.SPREAD), st.data())
def test_one_row_more_or_another_one_is_seen(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    other = [*rows[:at], rows[at] + 1, *rows[at + 1 :]]
    base = Held()
    for make in (list, tuple, np.array, torch.tensor):
        assert not likeness_of(Subset(base, make(rows))).is_like(likeness_of(Subset(base, make(other))))
        assert not likeness_of(Subset(base, make(rows))).is_like(likeness_of(Subset(base, make([*rows, 3]))))


class Table:
    """Rows of somebody's own, not derived from anything."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, row):
        return self.rows[row]


DIFFERENT = {
    "a word": (Held(split="train"), Held(split="val")),
    "a path": (Held(root=pathlib.Path("a")), Held(root=pathlib.Path("b"))),
    "a number": (Held(seed=1), Held(seed=2)),
    "another class": (Held(), types.new_class("Held", (Held,))()),
    "an attribute": (Held(a=1), Held(b=1)),
    "values of a tensor": (Held(x=torch.zeros(2000)), Held(x=torch.ones(2000))),
    "tensors in a tuple": (Held(x=(torch.zeros(5),)), Held(x=(torch.ones(5),))),
    "pairs of tensors": (Held(x=[(torch.zeros(5), 1)] * 50), Held(x=[(torch.ones(5), 1)] * 50)),
    "the type of an array": (Held(x=np.zeros(3)), Held(x=np.zeros(3, dtype="f4"))),
    "the shape of an array": (Held(x=np.zeros((2, 3))), Held(x=np.zeros((3, 2)))),
    "files of a long list": ([f"a{row}" for row in range(9999)], [f"b{row}" for row in range(9999)]),
    "the end of a long text": (Held(text="a" * 999), Held(text="a" * 998 + "b")),
    "inside a wrapper": (Subset(Held(x=1), [0]), Subset(Held(x=2), [0])),
    "inside two": (ConcatDataset([Held(), Held(x=1)]), ConcatDataset([Held(), Held(x=2)])),
    "inside a class of one's own": (Held(table=Table([1, 2])), Held(table=Table([1, 3]))),
    "keys": (Held(by_name={"a": 0}), Held(by_name={"b": 0})),
    "the rows of a sampler": (SubsetRandomSampler([1, 2]), SubsetRandomSampler([1, 3])),
    "the rows of a sampler in one": tuple(
        BatchSampler(SubsetRandomSampler(rows), 2, drop_last=False) for rows in ([1, 2], [1, 3])
    ),
    "the kind of sampler": (SubsetRandomSampler([0, 1]), SequentialSampler([0, 1])),
}


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
def test_data_that_differ_are_not_alike(pair):
    first, second = map(likeness_of, pair)
    assert first.is_like(likeness_of(pair[0])), "each is like itself"
    assert not first.is_like(second)


def test_the_number_of_the_epoch_makes_no_difference():
    assert likeness_of(Held(epoch=1, max_epochs=3)).is_like(likeness_of(Held(epoch=2, max_epochs=3)))


def test_one_object_stays_the_same_though_it_counts_and_keeps_but_not_with_another_word():
    data = Held(num_read=0, kept=[None] * 3, split="train")
    before = likeness_of(data)
    data.num_read, data.kept = 7, [1, 2, 3]
    assert before.is_like(likeness_of(data))
    assert before.is_like(likeness_of(data, None))
    data.split = "val"
    assert not before.is_like(likeness_of(data))


def test_of_two_that_are_gone_what_they_held_decides():
    before, after = likeness_of(Held(x=1)), likeness_of(Held(x=1))
    assert before.is_like(after)


class Odd(Dataset):
    """Answers nothing."""

    __slots__ = ()

    def __getattribute__(self, name):
        if name == "__dict__":
            return 5
        raise RuntimeError(name)


def test_what_cannot_be_looked_at_is_known_by_its_class():
    held = [Odd(), object(), torch.device("meta"), torch.zeros(3, device="meta"), torch.zeros(3).to_sparse(), {1, 2}]
    for value in held:
        assert likeness_of(Held(x=value)).is_like(likeness_of(Held(x=value)))


def test_text_that_may_be_the_data_is_not_kept(monkeypatch):
    text = "x" * 10_000
    (part,) = likeness_of(Held(text=text)).parts
    assert len(repr(part.words)) < 2 * likeness.LONGEST_WORD


def test_a_frame_of_pandas_is_known_by_its_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"path": [f"{row}.png" for row in range(100)], "label": range(100)})
    first, same, other = frame[:50], frame[:50].copy(), frame[50:].reset_index(drop=True)
    assert likeness_of(Held(frame=first)).is_like(likeness_of(Held(frame=same)))
    assert not likeness_of(Held(frame=first)).is_like(likeness_of(Held(frame=other)))
