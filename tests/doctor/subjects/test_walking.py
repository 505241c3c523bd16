"""A batch is taken apart where it is plain how, and never where it is not; a pass names what it draws."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.subject.walking import Walk, split_batch


class Pair(NamedTuple):
    image: object
    label: object


def joined(samples):
    return torch.utils.data.default_collate(samples)


def same(left, right):
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(np.array_equal(np.asarray(left), np.asarray(right)))


@given(
    size=st.integers(1, 6),
    width=st.integers(0, 5),
    form=st.sampled_from(
        [
            lambda x, i: x,
            lambda x, i: {"image": x, "label": i},
            lambda x, i: (x, i),
            lambda x, i: Pair(x, i),
            lambda x, i: {"image": x, "more": {"name": f"n{i}", "box": torch.ones(4) * i}},
        ]
    ),
)
def test_what_torch_joins_is_taken_apart_again(size, width, form):
    samples = [form(torch.full((3, width), float(i)), i) for i in range(size)]
    parts = split_batch(joined(samples), size)
    assert len(parts) == size
    assert all(same(part, sample) for part, sample in zip(parts, samples, strict=True))


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (3, None),
        ("text", None),
        ({}, None),
        ((np.ones((4, 2)), np.ones(3)), None),  # which of them counts?
        ((np.ones((4, 2)), 7), None),
        (np.ones((9, 2)), 8),  # more than a batch can have
        (np.float32(1), None),
    ],
)
def test_what_is_not_plain_stays_whole(batch, size):
    assert split_batch(batch, size) is None


def test_images_of_several_sizes_are_not_cut_into_channels():
    images = [np.ones((3, 4, 4)), np.ones((3, 5, 5))]
    targets = [{"boxes": np.ones((2, 4))}, {"boxes": np.ones((1, 4))}]
    parts = split_batch((images, targets), 8)
    assert [part[0].shape for part in parts] == [(3, 4, 4), (3, 5, 5)]
    assert [part[1]["boxes"].shape for part in parts] == [(2, 4), (1, 4)]


@pytest.mark.parametrize(
    "batch", [[{"x": np.ones((3, 2))}, {"x": np.ones((3, 4))}], [(np.ones(3), 1), (np.ones(4), 2)], ["a", "b", "c"]]
)
def test_a_list_of_samples_that_nobody_joined_is_its_samples(batch):
    assert split_batch(batch) == batch


class Fragile:
    """Batches of two; the second one fails."""

    def __init__(self):
        self.drawn = 0

    def __next__(self):
        self.drawn += 1
        if self.drawn == 2:
            raise OSError("gone")
        if self.drawn == 4:
            raise StopIteration
        return np.arange(2) + 10 * self.drawn


def test_samples_are_named_before_they_are_drawn_and_a_failure_does_not_end_the_pass():
    walk = Walk(Fragile(), splits=True, batch_size=2)
    seen = []
    while True:
        coming = walk.coming
        try:
            sample = next(walk)
        except OSError:
            seen.append((coming, walk.key, "failed"))
            continue
        except StopIteration:
            break
        seen.append((coming, walk.key, int(sample)))
    assert seen == [
        ("batch 0", "#0", 10),
        ("#1", "#1", 11),
        ("batch 1", "batch 1", "failed"),
        ("batch 2", "#4", 30),
        ("#5", "#5", 31),
    ]
    assert (walk.position, walk.num_items) == (6, 3)


def test_a_sample_is_named_by_its_own_key():
    walk = Walk(iter([{"__key__": "a/7", "x": 1}, {"x": 2}]), key_of=lambda sample: sample.get("__key__"))
    next(walk)
    assert walk.key == "a/7"
    next(walk)
    assert walk.key == "#1"
