"""What differs between workers and one process is told, and nothing else is: rounding, random fields, worker numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.walks.comparison import differing, fixed_fields
from headrace.doctor.walks.field_digests import digest_fields, is_same, whole_digest

NUMBERS = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20)


@given(values=NUMBERS, noise=st.floats(-1e-6, 1e-6))
def test_rounding_is_no_difference(values, noise):
    array = np.array(values, np.float32)
    one, other = digest_fields({"x": array}), digest_fields({"x": array + np.abs(array).max() * noise})
    assert is_same(one["x"], other["x"]) or one["x"][1] != other["x"][1]


@given(values=NUMBERS, place=st.integers(0), change=st.floats(0.1, 10))
def test_a_value_of_another_size_is_a_difference(values, place, change):
    array = np.array(values, np.float32)
    other = array.copy()
    other[place % len(array)] += np.float32(change) * max(np.abs(array).max(), 1)
    assert not is_same(digest_fields(array)["sample"], digest_fields(other)["sample"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32([1, np.nan]), np.float32([1, 2])),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.tensor([1, 2]), torch.tensor([1.0, 2.0])),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        ("cat", "dog"),
        (None, 0),
        (True, False),
        ([1, 2, 3], [1, 2, 4]),
    ],
)
def test_each_kind_of_value_is_told_apart(one, other):
    first, second = digest_fields({"x": one})["x"], digest_fields({"x": other})["x"]
    assert is_same(first, digest_fields({"x": one})["x"])
    assert not is_same(first, second)


def test_what_has_no_digest_is_never_a_difference():
    assert is_same(digest_fields({"x": object()})["x"], digest_fields({"x": object()})["x"])
    assert whole_digest(digest_fields({"x": object(), "y": 1})) is None
    assert whole_digest(digest_fields({"x": 2, "y": 1})) != whole_digest(digest_fields({"x": 1, "y": 2}))


def sample(row, *, noise=0.0, worker=0):
    return digest_fields({"x": np.float32([row, row + 1]), "noise": np.float32([noise]), "worker": worker})


def reads():
    return {row: [sample(row, noise=seed * 10 + row) for seed in (1, 2)] for row in range(8)}


def walked(value=lambda row: row):
    return {row: [(row % 2, sample(value(row), noise=99, worker=row % 2))] for row in range(8)}


def test_random_fields_are_left_out():
    assert fixed_fields(reads()) == ("x", "worker")


def test_equal_data_and_the_number_of_the_worker_are_no_difference():
    single = {row: samples[0] for row, samples in reads().items()}
    assert differing(single, walked(), fixed_fields(reads())) == {}


def test_the_samples_that_differ_are_named():
    single = {row: samples[0] for row, samples in reads().items()}
    assert differing(single, walked(lambda row: 50 if row in {3, 6} else row), fixed_fields(reads())) == {"x": [3, 6]}
