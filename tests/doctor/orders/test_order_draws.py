"""Walks of samplers and the measures of an order, against the simplest correct program."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.order_draws import Drawn, adjacency, displacement, label_order, walk


class Recorder:
    """A flight recorder that keeps how often something was taken in hand."""

    def __init__(self):
        self.num_begun = 0

    def begin(self, *_):
        self.num_begun += 1

    def end(self):
        pass

    def note_stage(self, *_):
        pass


@pytest.fixture
def bench():
    return Bench(Recorder())


ORDERS = st.integers(2, 60).flatmap(lambda size: st.permutations(range(size)))


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=5), max_size=20))
def test_a_walk_keeps_what_was_drawn(batches):
    drawn = walk(batches, Bench(Recorder()), 5.0)
    assert drawn.is_complete
    assert [list(batch) for batch in drawn.batches()] == batches
    assert drawn.told().num_samples == sum(map(len, batches))
    assert drawn.told().num_different == len({one for batch in batches for one in batch})


def test_a_walk_ends_at_its_limit_and_says_so(bench):
    def endless():
        while True:
            yield 1

    assert not walk(endless(), bench, 0.0).is_complete


def test_the_deadline_of_a_sample_runs_again_after_many_draws(bench):
    walk(range(5000), bench, 60.0)
    assert bench._recorder.num_begun >= 5


@given(ORDERS, st.integers(1, 7), st.randoms())
def test_the_hash_of_batches_ignores_the_order_of_batches_and_inside_them(order, size, shuffler):
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    other = [list(batch) for batch in batches]
    for batch in other:
        shuffler.shuffle(batch)
    shuffler.shuffle(other)
    one, two = (walk(found, Bench(Recorder()), 5.0).told() for found in (batches, other))
    assert one.batches_hash == two.batches_hash
    assert (one.order_hash == two.order_hash) == ([*map(list, batches)] == other)


def test_other_batches_have_another_hash():
    one, two = (
        Drawn(ids=[0, 1, 2, 3], sizes=[2, 2], is_complete=True),
        Drawn(ids=[0, 2, 1, 3], sizes=[2, 2], is_complete=True),
    )
    assert one.told().batches_hash != two.told().batches_hash


@given(ORDERS)
def test_displacement_is_the_mean_distance_of_places(order):
    expected = sum(abs(place - number) for place, number in enumerate(order)) / len(order) ** 2
    assert displacement(order) == pytest.approx(expected)
    assert displacement(order, order) == 0.0
    assert displacement(order, sorted(order)) == pytest.approx(expected)


@given(ORDERS)
def test_adjacency_is_the_share_of_neighbours_kept(order):
    kept = sum(second == first + 1 for first, second in itertools.pairwise(order))
    assert adjacency(order) == pytest.approx(kept / (len(order) - 1))
    assert adjacency(sorted(order)) == 1.0


def test_a_random_order_is_displaced_by_a_third():
    order = list(range(20_000))
    random.Random(0).shuffle(order)
    assert displacement(order) == pytest.approx(1 / 3, abs=0.01)


def test_orders_with_repeats_are_not_measured():
    assert displacement([1, 1, 2]) is None
    assert adjacency([1, 1, 2]) is None
    assert displacement([1, 2], [1, 3]) is None


def test_what_a_random_order_of_labels_would_have_is_what_shuffling_gives():
    labels = np.repeat(np.arange(5), [400, 300, 200, 60, 40])
    np.random.default_rng(3).shuffle(labels)
    found = label_order(labels, [20] * 50)
    assert found.num_labels == 5
    assert found.mean_run == pytest.approx(found.random_run, rel=0.05)
    assert found.labels_per_batch == pytest.approx(found.random_per_batch, rel=0.05)


def test_sorted_labels_come_in_runs_and_make_batches_of_one_class():
    found = label_order(np.repeat(np.arange(4), 50), [10] * 20)
    assert found.mean_run == 50
    assert found.labels_per_batch == 1.0


@pytest.mark.parametrize("labels", [[], [3], [2, 2, 2]])
def test_fewer_than_two_classes_have_no_order(labels):
    assert label_order(np.array(labels, np.int64), []) is None
