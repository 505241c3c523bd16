import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.waits import quantiles

waits = st.lists(st.floats(0, 10), min_size=1, max_size=60)


def autocorrelated(draws, num, *, memory):
    """Waits whose logarithms remember `memory` of the one before; their quantiles are known."""
    logs = np.empty(num)
    logs[0] = draws.normal()
    steps = draws.normal(scale=math.sqrt(1 - memory**2), size=num)
    for place in range(1, num):
        logs[place] = memory * logs[place - 1] + steps[place]
    return np.exp(logs)


@settings(max_examples=30)
@given(waits, st.integers(1, 8))
def test_estimates_are_numpys_lie_in_their_intervals_and_grow(some, in_flight):
    found = quantiles(some, in_flight=in_flight)
    assert [one.wait_s for one in found] == pytest.approx(np.quantile(some, [0.5, 0.9, 0.99]).tolist())
    assert [one.quantile for one in found] == [0.5, 0.9, 0.99]
    for one in found:
        assert one.block_length >= in_flight
        assert one.interval_s.low <= one.interval_s.high
    lows = [one.interval_s.low for one in found]
    assert lows == sorted(lows)


@settings(max_examples=20)
@given(waits, st.floats(0.001, 1_000))
def test_the_unit_does_not_matter(some, scale):
    for one, other in zip(quantiles(some, in_flight=2), quantiles(np.array(some) * scale, in_flight=2)):
        assert other.wait_s == pytest.approx(one.wait_s * scale)
        assert other.interval_s.low == pytest.approx(one.interval_s.low * scale)


def test_equal_seeds_give_equal_intervals():
    some = np.random.default_rng(0).exponential(size=300)
    assert quantiles(some, in_flight=4, seed=5) == quantiles(some, in_flight=4, seed=5)
    assert quantiles(some, in_flight=4, seed=5) != quantiles(some, in_flight=4, seed=6)


def test_independent_waits_have_the_interval_of_scipys_bootstrap():
    some = np.random.default_rng(1).exponential(size=600)
    (median,) = quantiles(some, in_flight=1, which=(0.5,))
    other = np.random.default_rng(2)
    oracle = stats.bootstrap((some,), np.median, method="percentile", n_resamples=1_999, batch=100, rng=other)
    oracle = oracle.confidence_interval
    width = oracle.high - oracle.low
    assert median.interval_s.low == pytest.approx(oracle.low, abs=0.25 * width)
    assert median.interval_s.high == pytest.approx(oracle.high, abs=0.25 * width)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_intervals_hold_the_true_quantile_nearly_as_often_as_they_promise(memory):
    draws = np.random.default_rng(3)
    num, held = 200, np.zeros(2)
    for seed in range(num):
        found = quantiles(autocorrelated(draws, 400, memory=memory), in_flight=8, which=(0.5, 0.9), seed=seed)
        truths = [math.exp(stats.norm.ppf(one.quantile)) for one in found]
        held += [one.interval_s.low <= truth <= one.interval_s.high for one, truth in zip(found, truths)]
    # The moving-block bootstrap is known to promise a few per cent too much.
    assert (held / num >= 0.85).all()


@pytest.mark.slow
def test_stretches_of_one_step_would_promise_far_more_than_they_keep():
    """Why stretches are needed at all: the control of the test above."""
    draws = np.random.default_rng(3)
    widths = []
    for seed in range(60):
        some = autocorrelated(draws, 400, memory=0.9)
        alone = np.random.default_rng(seed).permutation(some)  # the same waits, neighbours torn apart
        pair = [quantiles(one, in_flight=16, which=(0.5,), seed=seed)[0].interval_s for one in (some, alone)]
        widths.append([one.high - one.low for one in pair])
    kept, torn = np.mean(widths, axis=0)
    assert kept > 1.8 * torn


def test_a_quantile_that_may_be_longer_than_all_waits_seen_has_no_upper_end():
    some = np.random.default_rng(4).exponential(size=400)
    half, ninety, ninety_nine = quantiles(some, in_flight=4)
    assert half.interval_s.high < ninety.interval_s.high < math.inf
    assert ninety_nine.interval_s.high == math.inf
    many = np.random.default_rng(4).exponential(size=8_000)
    assert quantiles(many, in_flight=4, which=(0.99,))[0].interval_s.high < math.inf


def test_too_few_stretches_bound_nothing():
    (one,) = quantiles(np.arange(1.0, 40.0), in_flight=8, which=(0.5,))
    assert one.interval_s == Interval(0.0, math.inf)
    assert one.wait_s == 20.0
    with pytest.raises(ValueError, match=r"^quantiles need at least one wait$"):
        quantiles([], in_flight=1)
