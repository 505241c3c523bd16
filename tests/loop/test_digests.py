"""Digests say whether two states are the same to the last bit, and name the first item that is not."""

import math

import numpy as np
import pytest
import torch

from headrace.loop.checkpoint.digests import digests, first_difference


class Part:
    name = "part"
    is_per_rank = False

    def __init__(self, value):
        self.value = value

    def state(self):
        return self.value


def of(value):
    return digests([Part(value)])


SAME = [
    lambda: {"a": torch.tensor([1.0, -0.0, math.nan]), "b": [1, "x", None, True]},
    lambda: {"nan": math.nan, "inf": -math.inf},
    lambda: {"set": {"a", "b", "c", "d", "e"}, "bytes": b"ab", "array": np.arange(6.0).reshape(2, 3)},
    lambda: {"t": torch.arange(12.0).reshape(3, 4).T},
    lambda: {"empty": torch.zeros(0, 3), "scalar": torch.tensor(2)},
    lambda: {1: "a", "1": "b"},
]


@pytest.mark.parametrize("make", SAME)
def test_the_same_state_made_twice_has_the_same_digests(make):
    assert first_difference(of(make()), of(make())) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)),
        (torch.zeros(2, 3), torch.zeros(3, 2)),
        (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, math.nextafter(3.0, 4.0)]).double()),
        (np.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (b"a", "a"),
        ({"x"}, {"y"}),
        (torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.uint8)),
    ],
)
def test_what_differs_in_a_bit_or_a_type_is_named(one, other):
    same = {"first": torch.ones(3)}
    assert first_difference(of({**same, "x": one}), of({**same, "x": other})) == "part.x"


def test_the_last_bit_of_one_weight_is_seen():
    one = torch.ones(1000)
    other = one.clone()
    other[777] = torch.nextafter(other[777], torch.tensor(2.0))
    found = first_difference(of({"fc": {"bias": one, "weight": one}}), of({"fc": {"bias": one, "weight": other}}))
    assert found == "part.fc.weight"


def test_an_item_that_only_one_has_is_named():
    assert first_difference(of({"a": 1}), of({"a": 1, "b": 2})) == "part.b"
    assert first_difference(of({"a": 1, "b": 2}), of({"a": 1})) == "part.b"
    assert first_difference(of({1: "a", "1": "b"}), of({1: "a", "1": "c"})) == "part.1"


def test_a_digest_is_small_whatever_the_item():
    ((name, digest),) = of({"weight": torch.zeros(100_000)})
    assert (name, len(digest)) == ("part.weight", 16)
