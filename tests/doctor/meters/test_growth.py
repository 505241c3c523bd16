"""Memory over batches: what is a leak, what is a plateau, and what cannot be told."""

import math
import statistics

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from headrace.doctor.meters.growth import judge_growth, theil_sen

MIB = 1 << 20
NUM = 80

points = st.lists(st.tuples(st.integers(0, 50), st.integers(-1000, 1000)), min_size=2, max_size=30).filter(
    lambda seen: len({x for x, _ in seen}) > 1
)


@hypothesis.given(points)
def test_the_slope_is_the_median_of_all_pairs(seen):
    slopes = [(y2 - y1) / (x2 - x1) for place, (x1, y1) in enumerate(seen) for x2, y2 in seen[place + 1 :] if x1 != x2]
    assert theil_sen(*zip(*seen, strict=True)) == pytest.approx(statistics.median(slopes))


@hypothesis.given(points, st.integers(-5, 5), st.integers(-100, 100))
def test_adding_a_line_adds_its_slope(seen, slope, offset):
    x, y = zip(*seen, strict=True)
    tilted = [value + slope * place + offset for place, value in zip(x, y, strict=True)]
    assert theil_sen(x, tilted) == pytest.approx(theil_sen(x, y) + slope)


def test_a_quarter_of_wild_values_does_not_move_it():
    x = range(40)
    y = [3 * place + (1e9 if place % 5 == 2 else 0) for place in x]
    assert theil_sen(x, y) == pytest.approx(3, abs=0.5)


def test_many_points_are_thinned():
    assert theil_sen(range(20_000), [2 * place for place in range(20_000)]) == 2


def test_points_at_one_place_have_no_slope():
    with pytest.raises(ValueError, match=r"^a slope needs two points at different places$"):
        theil_sen([1, 1], [2, 3])


def a_run(memory, *, span=4000, noise_mib=0.0, num=NUM, seed=0):
    """(batches, bytes) of a function from 0..1 to MiB, on top of 500 MiB."""
    random = np.random.default_rng(seed)
    return [
        (span * place, MIB * (500 + memory(place) + noise_mib * random.normal())) for place in np.linspace(0, 1, num)
    ]


rises = st.floats(20, 5000)
noises = st.floats(0, 0.03)
seeds = st.integers(0, 1000)


@hypothesis.given(rises, noises, seeds)
def test_a_steady_rise_is_a_leak(rise_mib, noise, seed):
    found = judge_growth(a_run(lambda place: rise_mib * place, noise_mib=noise * rise_mib, seed=seed))
    assert found.verdict == "leak"
    assert found.bytes_per_1000 == pytest.approx(rise_mib * MIB / 4, rel=0.2)


def filling_up(rise_mib, noise, seed, speed):
    """Pages that workers copy by touching them: fast at first, until all are copied."""
    return a_run(lambda place: rise_mib * (1 - math.exp(-speed * place)), noise_mib=noise * rise_mib, seed=seed)


@hypothesis.given(rises, noises, seeds, st.floats(5, 50))
def test_filling_up_is_a_plateau(rise_mib, noise, seed, speed):
    """8 % of what the first half grew is left to the second: far enough from the limit for any noise of the strategy."""
    assert judge_growth(filling_up(rise_mib, noise, seed, speed)).verdict == "plateau"


@hypothesis.given(rises, noises, seeds, st.floats(2.5, 5))
def test_filling_up_is_never_a_leak(rise_mib, noise, seed, speed):
    """Near the limit noise decides between the two other answers."""
    assert judge_growth(filling_up(rise_mib, noise, seed, speed)).verdict != "leak"


@hypothesis.given(rises, seeds, st.floats(0.6, 2.5))
def test_half_filled_is_not_called_a_leak(rise_mib, seed, speed):
    run = a_run(lambda place: rise_mib * (1 - math.exp(-speed * place)), noise_mib=0.001 * rise_mib, seed=seed)
    assert judge_growth(run).verdict != "leak"


@hypothesis.given(st.floats(0, 50), seeds)
def test_noise_is_no_growth(noise_mib, seed):
    assert judge_growth(a_run(lambda place: 0, noise_mib=noise_mib, seed=seed)).verdict == "plateau"


@pytest.mark.parametrize("teeth", [2, 3.3, 7, 20])
def test_a_saw_is_no_leak(teeth):
    """Freed at each end of an epoch, and built up again."""
    assert judge_growth(a_run(lambda place: 200 * (place * teeth % 1))).verdict == "plateau"


@hypothesis.given(st.floats(1.2, 30))
def test_no_saw_is_called_a_leak(teeth):
    assert judge_growth(a_run(lambda place: 200 * (place * teeth % 1))).verdict != "leak"


@pytest.mark.parametrize("steps", [3, 6, 10, 25])
def test_a_leak_in_steps_is_no_plateau(steps):
    """Lists and arenas grow by large pieces."""
    assert judge_growth(a_run(lambda place: 400 / steps * math.floor(place * steps))).verdict != "plateau"


def test_a_single_jump_that_stays_is_a_plateau():
    assert judge_growth(a_run(lambda place: 300 * (place > 0.3))).verdict == "plateau"


def test_falling_memory_is_no_leak():
    assert judge_growth(a_run(lambda place: -300 * place)).verdict == "plateau"


def test_a_leak_that_begins_late_is_seen():
    assert judge_growth(a_run(lambda place: 900 * max(0, place - 0.4))).verdict == "leak"


def test_the_warm_up_is_left_out():
    run = a_run(lambda place: 3000 * min(place, 0.25))
    found = judge_growth(run, after_batch=1000)
    assert found.verdict == "plateau"
    assert abs(found.bytes_per_1000) < MIB
    assert found.num_batches < 3001


def test_growth_that_copying_explains_is_undecided():
    run = a_run(lambda place: 100 * place)
    assert judge_growth(run, could_copy_bytes=400 * MIB).verdict == "undecided"
    assert judge_growth(run, could_copy_bytes=20 * MIB).verdict == "leak"


@pytest.mark.parametrize("seen", [[], [(0, 1)], [(0, 1)] * 100, [(place, 1) for place in range(15)]])
def test_too_little_is_undecided(seen):
    found = judge_growth(seen)
    assert found.verdict == "undecided"
    assert found.bytes_per_1000 is None
