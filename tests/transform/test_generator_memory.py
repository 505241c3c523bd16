"""Law: whether a generator moved is told from its memory as it is from its state."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.transform import capture, generator_memory, global_generators, keyed, moved_since, restore

SAVED_PYTHON = random.Random(1).getstate()
SAVED_NUMPY = np.random.RandomState(1).get_state()
WITH_RESERVE = (*SAVED_NUMPY[:3], 1, 0.5)  # the same place, with the second of two normal numbers still to come

ACTS = {
    "draw": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "shuffle": lambda: random.shuffle([1, 2, 3]),
    "seed": lambda: random.seed(3),
    "put back": lambda: random.setstate(SAVED_PYTHON),
    "numpy draw": np.random.random,
    "numpy normal": np.random.standard_normal,
    "numpy many": lambda: np.random.random(624),  # all words are new, and the place is the same
    "numpy seed": lambda: np.random.seed(3),
    "numpy put back": lambda: np.random.set_state(SAVED_NUMPY),
    "numpy put back with reserve": lambda: np.random.set_state(WITH_RESERVE),
    "nothing": lambda: None,
}


def plainly_moved(before, after):
    names = []
    if before[0] != after[0]:
        names.append("random")
    if any(not np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True)):
        names.append("numpy.random")
    return tuple(names)


@given(
    first=st.lists(st.sampled_from(sorted(ACTS)), max_size=4), then=st.lists(st.sampled_from(sorted(ACTS)), max_size=4)
)
def test_what_moved_is_what_the_states_say(first, then):
    with keyed(1):
        for act in first:
            ACTS[act]()
        snapshot, before = capture(), (random.getstate(), np.random.get_state())
        memory = generator_memory.of_random(), generator_memory.of_numpy()
        for act in then:
            ACTS[act]()
        moved = plainly_moved(before, (random.getstate(), np.random.get_state()))
        assert moved_since(snapshot) == moved
        if "random" in moved:
            assert generator_memory.of_random() != memory[0]
        if "numpy.random" in moved:
            assert generator_memory.of_numpy() != memory[1]
        restore(snapshot)
        assert plainly_moved(before, (random.getstate(), np.random.get_state())) == ()


def test_the_memory_is_seen_here():
    assert generator_memory.of_random() is not None
    assert generator_memory.of_numpy() is not None


@pytest.mark.parametrize("act", sorted(ACTS))
def test_what_moved_is_the_same_where_the_memory_cannot_be_seen(act, monkeypatch):
    with keyed(1):
        snapshot = capture()
        ACTS[act]()
        seen = moved_since(snapshot)
    monkeypatch.setattr(global_generators.generator_memory, "of_random", lambda: None)
    monkeypatch.setattr(global_generators.generator_memory, "of_numpy", lambda: None)
    with keyed(1):
        snapshot = capture()
        ACTS[act]()
        assert moved_since(snapshot) == seen


def test_another_bit_generator_is_compared_by_its_state():
    mine = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(1))
        assert generator_memory.of_numpy() is None
        snapshot = capture()
        assert moved_since(snapshot) == ()
        np.random.random()
        assert moved_since(snapshot) == ("numpy.random",)
    finally:
        np.random.set_bit_generator(mine)
