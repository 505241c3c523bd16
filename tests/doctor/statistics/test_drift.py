import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headrace.doctor.statistics.drift import theil_sen

logs = st.lists(st.floats(-1, 1).map(lambda value: round(value, 6)), min_size=6, max_size=20, unique=True)


@given(logs)
def test_slope_and_interval_are_those_of_scipy(some):
    times = np.cumsum(np.linspace(1, 2, len(some)))
    drift = theil_sen(times, np.exp(some))
    oracle = stats.theilslopes(some, times, alpha=0.95)
    assert drift.log_per_s == pytest.approx(oracle.slope, abs=1e-9)
    assert drift.interval_log_per_s.low == pytest.approx(oracle.low_slope, abs=1e-9)
    assert drift.interval_log_per_s.high == pytest.approx(oracle.high_slope, abs=1e-9)


@given(logs, st.floats(-0.01, 0.01), st.randoms(use_true_random=False))
def test_a_trend_is_added_to_the_slope_and_the_order_of_rounds_does_not_matter(some, slope, order):
    times = 10.0 * np.arange(len(some))
    plain = theil_sen(times, np.exp(some))
    places = list(range(len(some)))
    order.shuffle(places)
    tilted = theil_sen(times[places], np.exp(np.array(some) + slope * times)[places])
    assert tilted.log_per_s == pytest.approx(plain.log_per_s + slope, abs=1e-9)
    assert tilted.duration_s == plain.duration_s == 10.0 * (len(some) - 1)


def test_a_throttled_machine_drifts_beyond_chance_and_outliers_do_not_hide_it():
    draws = np.random.default_rng(0)
    times = 13.0 * np.arange(24)
    logs = -0.1 * times / times[-1] + draws.normal(scale=0.01, size=24)
    logs[[3, 17]] = (-1.5, 1.0)
    drift = theil_sen(times, np.exp(logs))
    assert drift.is_certain
    assert drift.total_log == pytest.approx(-0.1, abs=0.02)


def test_steady_rounds_seldom_drift_beyond_chance():
    draws = np.random.default_rng(1)
    certain = [theil_sen(np.arange(12.0), np.exp(draws.normal(scale=0.02, size=12))).is_certain for _ in range(400)]
    assert np.mean(certain) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_few_rounds_say_nothing_and_one_time_has_no_slope():
    assert not theil_sen([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]).is_certain
    with pytest.raises(ValueError, match=r"^a drift needs rounds at two different times"):
        theil_sen([1.0, 1.0], [1.0, 2.0])
