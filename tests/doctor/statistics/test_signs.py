import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headrace.doctor.statistics.holm import holm
from headrace.doctor.statistics.signs import p_different, p_same

log_ratios = st.lists(st.floats(-1, 1).map(lambda value: round(value, 4)), min_size=1, max_size=9).map(np.array)
p_values = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def by_definition(values):
    """The two-sided p, by trying all signs one after another."""
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, values)))
        for signs in itertools.product([1, -1], repeat=len(values))
    ]
    return sum(one >= abs(sum(values)) - 1e-9 for one in sums) / len(sums)


@given(log_ratios)
def test_p_is_the_share_of_sign_patterns_as_one_sided(values):
    assert p_different(values) == pytest.approx(by_definition(values))


@settings(max_examples=20)
@given(log_ratios.filter(lambda values: len(values) > 1 and np.abs(values).sum() > 0.01))
def test_p_is_that_of_scipys_permutation_test(values):
    oracle = stats.permutation_test(
        (values,), lambda one, axis=-1: np.round(np.abs(one.mean(axis=axis)), 9), permutation_type="samples",
        alternative="greater", n_resamples=math.inf, vectorized=True,
    )  # fmt: skip
    assert p_different(values) == pytest.approx(oracle.pvalue)


@given(log_ratios, st.randoms(use_true_random=False), st.floats(0.1, 10))
def test_neither_order_nor_direction_nor_unit_changes_p(values, order, scale):
    shuffled = values.copy()
    order.shuffle(shuffled)
    assert p_different(shuffled) == p_different(values) == p_different(-values)
    assert p_different(values * scale) == p_different(values)
    assert p_same(shuffled, 0.1) == p_same(values, 0.1) == p_same(-values, 0.1)


@given(log_ratios, st.floats(0.01, 0.5), st.floats(1, 3))
def test_a_wider_margin_never_makes_sameness_less_sure(values, margin, times):
    assert p_same(values, margin * times) <= p_same(values, margin) + 1e-12
    assert p_same(values, math.inf) == 0.0


def test_five_blocks_cannot_tell_a_difference_and_six_can():
    assert p_different(np.full(5, 0.3)) == 2 / 2**5
    assert p_different(np.full(6, 0.3)) == 2 / 2**6


def test_more_blocks_than_can_be_tried_are_sampled():
    draws = np.random.default_rng(5)
    values = draws.normal(0.25, 1, size=21)
    exact = p_different(np.append(values[:20], []))
    assert 0 < exact < 1
    sampled = p_different(values)
    assert sampled == p_different(values)
    normal = 2 * stats.norm.sf(abs(values.sum()) / math.sqrt((values**2).sum()))
    assert sampled == pytest.approx(normal, abs=0.02)
    assert p_different(np.full(25, 0.1)) == pytest.approx(1 / 100_000, abs=1e-5)


@pytest.mark.parametrize("noise", ["normal", "standard_cauchy", "laplace"])
def test_equal_settings_get_a_small_p_no_more_often_than_it_says(noise):
    draws = np.random.default_rng(11)
    ps = np.array([p_different(getattr(draws, noise)(size=8)) for _ in range(1_000)])
    for level in (0.01, 0.05, 0.1, 0.5):
        assert (ps <= level).mean() <= level + 3.5 * math.sqrt(level * (1 - level) / 1_000)


def test_a_setting_that_differs_by_the_margin_is_seldom_called_the_same():
    draws = np.random.default_rng(12)
    ps = np.array([p_same(draws.normal(0.02, 0.01, size=8), 0.02) for _ in range(1_000)])
    assert (ps <= 0.05).mean() <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 1_000)


@given(p_values)
def test_holm_never_lowers_a_p_keeps_their_order_and_multiplies_by_no_more_than_their_number(ps):
    corrected = holm(ps)
    assert all(before <= after <= min(1.0, before * len(ps)) + 1e-12 for before, after in zip(ps, corrected))
    ranked = sorted(zip(ps, corrected))
    assert [after for _, after in ranked] == sorted(corrected)


@given(p_values, st.randoms(use_true_random=False))
def test_holm_does_not_know_the_order_of_candidates(ps, order):
    places = list(range(len(ps)))
    order.shuffle(places)
    assert holm([ps[place] for place in places]) == pytest.approx([holm(ps)[place] for place in places])


@given(p_values, st.floats(0, 1), st.integers(0, 5))
def test_holm_is_monotone_in_every_p(ps, lower, place):
    place %= len(ps)
    smaller = [*ps[:place], min(lower, ps[place]), *ps[place + 1 :]]
    assert all(one <= other + 1e-12 for one, other in zip(holm(smaller), holm(ps)))


def test_holm_rejects_what_bonferroni_rejects_and_more():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []
