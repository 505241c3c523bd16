import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headrace.doctor.statistics.period import period


def made(draws, *, num_workers, num_turns, slow=None, factor=1.0):
    """Seconds that batches took in their workers: long-tailed, one worker slower by a factor."""
    seconds = draws.lognormal(sigma=0.3, size=(num_turns, num_workers))
    if slow is not None:
        seconds[:, slow] *= factor
    return seconds.ravel()


@pytest.mark.parametrize("num_workers", [2, 3, 4, 8])
@pytest.mark.parametrize("slow", [0, -1])
def test_one_slow_worker_is_exposed_by_name(num_workers, slow):
    series = made(np.random.default_rng(0), num_workers=num_workers, num_turns=30, slow=slow, factor=2.0)
    found = period(series, num_workers=num_workers)
    assert found.p <= 0.01
    assert found.autocorrelation > 0.1
    assert found.slowest == slow % num_workers
    assert len(found.means) == num_workers


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [2, 4])
def test_equal_workers_are_seldom_told_apart(num_workers):
    draws = np.random.default_rng(1)
    ps = np.array(
        [
            period(made(draws, num_workers=num_workers, num_turns=20), num_workers=num_workers, seed=seed).p
            for seed in range(120)
        ]
    )
    for level in (0.05, 0.2, 0.5):
        assert (ps <= level).mean() <= level + 3 * math.sqrt(level * (1 - level) / ps.size)


@pytest.mark.slow
def test_a_trend_over_the_round_is_no_period():
    draws = np.random.default_rng(2)
    trend = np.linspace(1, 5, 80)
    ps = np.array(
        [period(trend * made(draws, num_workers=4, num_turns=20), num_workers=4, seed=seed).p for seed in range(80)]
    )
    assert (ps <= 0.05).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / ps.size)


def test_another_period_than_the_workers_is_not_theirs():
    """Every fifth batch is heavy; four workers take turns with it."""
    series = made(np.random.default_rng(3), num_workers=5, num_turns=32, slow=0, factor=3.0)
    assert period(series, num_workers=4).p > 0.05
    assert period(series, num_workers=5).p <= 0.01


def test_the_autocorrelation_is_that_of_the_ranks():
    series = np.round(made(np.random.default_rng(4), num_workers=3, num_turns=20), 1)
    ranks = stats.rankdata(series)
    centred = ranks - ranks.mean()
    expected = (centred[3:] * centred[:-3]).mean() / centred.var()
    assert period(series, num_workers=3).autocorrelation == pytest.approx(expected)


@settings(max_examples=15)
@given(st.integers(0, 1_000), st.floats(0.01, 100))
def test_the_unit_does_not_matter(seed, scale):
    series = made(np.random.default_rng(seed), num_workers=3, num_turns=10)
    one, other = period(series, num_workers=3), period(series * scale, num_workers=3)
    assert (other.autocorrelation, other.p) == (one.autocorrelation, one.p)
    assert other.means == pytest.approx([scale * mean for mean in one.means])


def test_nothing_is_said_of_too_few_turns_of_one_worker_or_of_equal_values():
    assert period(np.arange(31.0), num_workers=4) is None
    assert period(np.arange(31.0), num_workers=1) is None
    assert period(np.arange(31.0), num_workers=0) is None
    still = period(np.ones(40), num_workers=4)
    assert (still.autocorrelation, still.p) == (0.0, 1.0)


def test_healthy_workers_that_keep_step_look_alike_in_waits_but_not_in_their_own_seconds():
    """The limit that the docstring names: four batches come at once, and the loop waits for the first."""
    draws = np.random.default_rng(5)
    took = draws.normal(1.0, 0.01, size=(40, 4))
    waits = np.zeros((40, 4))
    waits[:, 0] = took.max(axis=1)
    assert period(waits.ravel(), num_workers=4).p <= 0.01
    assert period(took.ravel(), num_workers=4).p > 0.05
