"""Real generators in imitated workers: copies are recognised however they draw, and keyed or own ones never."""

import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.walks.draws import compare_draws
from headrace.doctor.walks.generators import global_states, held_states

KINDS = st.sampled_from(["numpy", "legacy", "python", "torch"])


def make(kind, seed):
    return {
        "numpy": np.random.default_rng,
        "legacy": np.random.RandomState,
        "python": random.Random,
        "torch": torch.Generator().manual_seed,
    }[kind](seed)


def draw(rng, number=1):
    for _ in range(number):
        torch.rand((), generator=rng) if isinstance(rng, torch.Generator) else rng.random()


class Holder:
    rng = None


def journal(rng, samples, *, number=lambda sample: 1, reseed=None):
    """What a worker writes that draws `number` times for each sample; `reseed` makes a generator for the sample."""
    holder = Holder()
    holder.rng = rng
    events = [{"at": "start", "states": held_states(dataset=holder)}]
    for sample in samples:
        if reseed is not None:
            holder.rng = reseed(sample)
        draw(holder.rng, number(sample))
        events.append({"at": "end", "index": sample, "fields": {}, "states": held_states(dataset=holder)})
    return events


def verdict(epochs, **options):
    (found,) = compare_draws(epochs, is_iterable=False, **options)
    return found.same_over_workers, found.same_over_epochs


EPOCHS = (((0, 1, 2, 3), (4, 5, 6, 7)), ((7, 6, 5, 4), (3, 2, 1, 0)))
"""Samples by epoch and worker, the second epoch the other way round."""


@given(kind=KINDS, seed=st.integers(0, 2**31))
def test_copies_draw_the_same_in_every_worker_and_epoch(kind, seed):
    assert verdict([[journal(make(kind, seed), samples) for samples in epoch] for epoch in EPOCHS]) == (True, True)


@given(kind=KINDS, seed=st.integers(0, 2**31))
def test_copies_are_known_by_their_origin_where_samples_draw_more_or_less(kind, seed):
    epochs = [[journal(make(kind, seed), samples, number=lambda s: 1 + s % 3) for samples in epoch] for epoch in EPOCHS]
    assert verdict(epochs) == (True, True)


@given(kind=KINDS, seed=st.integers(0, 2**20))
def test_a_seed_of_the_worker_that_ignores_the_epoch(kind, seed):
    epochs = [[journal(make(kind, seed + worker), samples) for worker, samples in enumerate(epoch)] for epoch in EPOCHS]
    assert verdict(epochs) == (False, True)


@given(kind=KINDS, seed=st.integers(0, 2**20))
def test_a_seed_of_the_epoch_that_ignores_the_worker(kind, seed):
    epochs = [[journal(make(kind, seed + epoch), samples) for samples in EPOCHS[epoch]] for epoch in range(2)]
    assert verdict(epochs) == (True, False)


@given(kind=KINDS, seeds=st.lists(st.integers(0, 2**31), min_size=4, max_size=4, unique=True))
def test_own_seeds_draw_their_own(kind, seeds):
    left = iter(seeds)
    assert verdict([[journal(make(kind, next(left)), samples) for samples in epoch] for epoch in EPOCHS]) == (
        False,
        False,
    )


@given(kind=KINDS, seed=st.integers(0, 2**20))
def test_a_generator_for_each_sample_is_no_copy(kind, seed):
    epochs = [
        [journal(make(kind, seed), samples, reseed=lambda s: make(kind, seed + 1 + s)) for samples in epoch]
        for epoch in EPOCHS
    ]
    assert verdict(epochs) == (False, False)


@given(kind=KINDS)
def test_one_constant_seed_for_each_sample_is_another_fault(kind):
    epochs = [
        [journal(make(kind, 3), samples, reseed=lambda s: make(kind, 7)) for samples in epoch] for epoch in EPOCHS
    ]
    assert not any(verdict(epochs))


def test_a_generator_that_nobody_draws_from_says_nothing():
    epochs = [[journal(make("numpy", 1), samples, number=lambda s: 0) for samples in epoch] for epoch in EPOCHS]
    assert verdict(epochs) == (None, None)
    (found,) = compare_draws(epochs, is_iterable=False)
    assert found.num_moved == 0


def test_one_worker_and_one_epoch_cannot_be_compared():
    assert verdict([[journal(make("numpy", 1), (0, 1, 2))]]) == (None, None)


@given(kind=KINDS, seed=st.integers(0, 2**31), number=st.integers(0, 3))
def test_looking_at_a_generator_does_not_move_it(kind, seed, number):
    one, other = make(kind, seed), make(kind, seed)
    draw(one, number)
    held_states(dataset=one)
    draw(other, number)
    assert held_states(dataset=one) == held_states(dataset=other)
    draw(other)
    assert held_states(dataset=one) != held_states(dataset=other)


def test_the_generators_of_the_interpreter_are_not_held_by_anybody():
    held = Holder()
    held.draws = [random.random, np.random.mtrand._rand, torch.default_generator, random.uniform]
    held.__dict__["more"] = random.SystemRandom()
    assert held_states(dataset=held) == {}
    assert set(global_states()) == {"random", "numpy.random", "torch"}
