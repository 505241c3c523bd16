"""Law: what happens between capture and restore leaves no trace in the caller's streams."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.transform import capture, keyed, moved_since, reseed, restore
from headrace.keys import derive_key

DRAWS = {
    "random": random.random,
    "numpy.random": np.random.random,
    "torch": lambda: torch.rand(()).item(),
}
# Draws that leave half a result inside the generator: the second of two normal numbers, 32 of 64 bits.
HALF_DRAWS = {
    "random": lambda: random.gauss(0, 1),
    "numpy.random": np.random.standard_normal,
    "torch": lambda: torch.randn(()).item(),
}
KEYS = st.integers(0, 2**128 - 1)


def draw_all(draws=DRAWS):
    return [draw() for draw in draws.values()]


@given(KEYS, st.lists(st.sampled_from(sorted(DRAWS)), max_size=4), st.sampled_from([DRAWS, HALF_DRAWS]))
def test_a_keyed_block_leaves_no_trace(key, drawn, draws):
    draw_all(draws)
    snapshot = capture()
    expected = draw_all(draws)
    restore(snapshot)
    with keyed(key):
        for name in drawn:
            draws[name]()
    assert moved_since(snapshot) == ()
    assert draw_all(draws) == expected


@given(KEYS)
def test_a_key_gives_the_same_draws_whatever_came_before(key):
    found = []
    for draws_before in (0, 1, 2):
        for _ in range(draws_before):
            draw_all(HALF_DRAWS)
        with keyed(key):
            found.append([*draw_all(), *draw_all(HALF_DRAWS)])
    assert found[0] == found[1] == found[2]


def test_the_caller_is_put_back_after_a_failure():
    snapshot = capture()
    with pytest.raises(RuntimeError), keyed(1):
        draw_all()
        raise RuntimeError
    assert moved_since(snapshot) == ()


@given(st.lists(st.sampled_from(sorted(DRAWS)), unique=True))
def test_names_exactly_the_generators_that_moved(drawn):
    snapshot = capture()
    for name in drawn:
        DRAWS[name]()
    assert sorted(moved_since(snapshot)) == sorted(drawn)


def test_the_cached_half_of_a_normal_counts_as_moved():
    for name, draw in HALF_DRAWS.items():
        draw()
        snapshot = capture()
        draw()
        assert moved_since(snapshot) == (name,)


def test_seeding_counts_as_moved():
    snapshot = capture()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    assert moved_since(snapshot) == ("random", "numpy.random", "torch")
    restore(snapshot)


def test_the_three_streams_of_one_key_differ():
    # random and numpy are one algorithm with one way of seeding; the same seed would give the same numbers.
    with keyed(derive_key("test")):
        assert len(set(draw_all())) == 3


def test_neighbouring_keys_give_unrelated_streams():
    drawn = []
    for sample in range(500):
        with keyed(derive_key("test", sample)):
            drawn.append(draw_all())
    for stream in zip(*drawn, strict=True):
        assert len(set(stream)) == 500
        assert abs(np.corrcoef(stream[:-1], stream[1:])[0, 1]) < 3.3 / np.sqrt(500)


def test_reseed_moves_everything():
    snapshot = capture()
    reseed(5)
    assert moved_since(snapshot) == ("random", "numpy.random", "torch")
    restore(snapshot)


@pytest.mark.slow
def test_torch_is_not_loaded_for_it():
    script = (
        "import sys; from headrace.engine.transform import capture, keyed, moved_since;"
        "snapshot = capture();"
        "exec('with keyed(1): pass');"
        "assert moved_since(snapshot) == (); assert 'torch' not in sys.modules;"
        "import torch; assert moved_since(snapshot) == ();"
        "torch.rand(1); assert moved_since(snapshot) == ('torch',)"  # not known then, but it had not drawn
    )
    subprocess.run([sys.executable, "-c", script], check=True)
