import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.rounds import Round, describe, rounds_for
from headrace.doctor.statistics.schedule import Slot

rates = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=12)


def kinds(described):
    return [one.kind for one in described.doubts]


@settings(max_examples=25)
@given(rates.filter(lambda some: len(some) > 1))
def test_the_interval_is_scipys_on_the_log_rate(some):
    logs = np.log(some)
    seen = describe(some).interval_per_s
    if logs.std() < 1e-6:
        assert seen.high == pytest.approx(seen.low, rel=1e-4)
        return
    low, high = stats.t.interval(0.95, len(some) - 1, loc=logs.mean(), scale=stats.sem(logs))
    assert seen.low == pytest.approx(math.exp(low), rel=1e-6)
    assert math.log(seen.high) == pytest.approx(high, rel=1e-6, abs=1e-9) if high < 700 else seen.high > 1e300


@given(rates, st.permutations(range(12)), st.integers(-6, 6).map(lambda power: 2.0**power))  # exact, also at limits
def test_neither_order_nor_unit_of_the_rates_matters(some, order, scale):
    plain = describe(some)
    other = describe([some[place] * scale for place in order if place < len(some)])
    assert kinds(other) == kinds(plain)
    assert other.median_per_s == pytest.approx(plain.median_per_s * scale)
    assert other.mean_per_s == pytest.approx(plain.mean_per_s * scale)
    assert math.log(other.interval_per_s.high) == pytest.approx(math.log(plain.interval_per_s.high) + math.log(scale))
    assert len(other.outliers) == len(plain.outliers)


@given(rates)
def test_every_value_is_kept_in_its_place_and_counted(some):
    described = describe(some)
    assert described.rates_per_s == tuple(some)
    assert described.median_per_s == pytest.approx(float(np.median(some)))
    assert described.mean_per_s == pytest.approx(float(stats.gmean(some)))


def test_steady_rounds_raise_no_doubt():
    described = describe([100.0, 101.0, 99.5, 100.4, 99.8])
    assert described.doubts == ()
    assert described.outliers == ()


def test_one_round_bounds_nothing_and_is_too_few():
    described = describe([100.0])
    assert described.interval_per_s == Interval(0.0, math.inf)
    assert kinds(described) == ["few"]


def test_an_outlier_is_marked_and_still_counted():
    steady = [100.0, 101.0, 99.5, 100.4, 99.8]
    described = describe([*steady[:2], 70.0, *steady[2:]])
    assert described.outliers == (2,)
    assert described.mean_per_s < describe(steady).mean_per_s
    assert "outlier" in kinds(described)
    assert next(one.text for one in described.doubts if one.kind == "outlier").endswith("round 3")


def test_a_fast_outlier_is_marked_as_a_slow_one_is():
    logs = [0.0, 0.01, -0.005, 0.004, -0.002, 0.4]
    assert describe(np.exp(logs)).outliers == describe(np.exp([-one for one in logs])).outliers == (5,)


def test_equal_rounds_but_for_a_hair_have_no_outlier():
    assert describe([100.0, 100.0, 100.0, 100.0, 100.5]).outliers == ()


@pytest.mark.parametrize(("num", "most"), [(5, 0.045), (6, 0.02), (12, 0.005)])
def test_healthy_rounds_are_seldom_marked(num, most):
    draws = np.random.default_rng(3)
    marked = [bool(describe(np.exp(draws.normal(scale=0.05, size=num))).outliers) for _ in range(1_500)]
    assert np.mean(marked) < most + 0.01


def test_spread_and_extremes_are_told():
    assert {"spread", "extreme", "imprecise"} <= set(kinds(describe([100.0, 100.0, 100.0, 100.0, 260.0])))


def test_the_number_of_rounds_for_a_precision_is_the_least_that_gives_it():
    needed = rounds_for(0.01, 0.02)

    def half_width(num):
        return stats.t.ppf(0.975, num - 1) * 0.02 / math.sqrt(num)

    assert half_width(needed) <= math.log(1.01) < half_width(needed - 1)
    assert rounds_for(0.001, 1.0) is None


def test_an_imprecise_rate_says_how_many_rounds_would_do():
    draws = np.random.default_rng(0)
    described = describe(np.exp(draws.normal(scale=0.04, size=6)), precision=0.01)
    doubt = next(one for one in described.doubts if one.kind == "imprecise")
    needed = rounds_for(0.01, float(np.log(described.rates_per_s).std(ddof=1)))
    assert needed is not None
    assert f"about {needed} rounds would do" in doubt.text


@pytest.mark.parametrize("some", [[], [1.0, 0.0], [1.0, -2.0], [math.nan], [math.inf]])
def test_what_is_no_rate_is_refused(some):
    with pytest.raises(ValueError, match=r"^rates must be numbers above 0"):
        describe(some)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_round_without_a_rate_is_refused(rate):
    with pytest.raises(ValueError, match=r"^a round's rate must be a number above 0"):
        Round(slot=Slot(setting="a", block=0), rate_per_s=rate, began_s=0.0)
