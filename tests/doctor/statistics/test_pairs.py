import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from headrace.doctor.statistics.noise import noise_floor
from headrace.doctor.statistics.pairs import Pairs, bootstrap_effect, pairs
from headrace.doctor.statistics.rounds import Round
from headrace.doctor.statistics.schedule import schedule

log_ratios = st.lists(st.floats(-1, 1).map(lambda value: round(value, 5)), min_size=2, max_size=10)
NOISES = {
    "normal": lambda draws, size: draws.normal(size=size),
    "t3": lambda draws, size: draws.standard_t(3, size=size),
    "one in ten five times": lambda draws, size: draws.normal(size=size) * np.where(draws.random(size) < 0.1, 5, 1),
    "uniform": lambda draws, size: draws.uniform(-1, 1, size=size),
}


def of(values):
    return Pairs(log_ratios=tuple(float(one) for one in values))


def measured(rates, *, num_blocks=6, seed=0):
    """Rounds whose rate is the setting's own times what the place in the schedule gives."""
    slots = schedule("now", ["then"], num_blocks=num_blocks, seed=seed)
    logs = [math.log(rates[slot.setting]) + 0.01 * place for place, slot in enumerate(slots)]
    return [
        Round(slot=slot, rate_per_s=math.exp(log), began_s=place) for place, (slot, log) in enumerate(zip(slots, logs))
    ]


def test_a_ratio_is_the_candidates_rate_over_the_others():
    rounds = measured({"now": 100.0, "then": 130.0})
    assert pairs(rounds, "then", "now").values == pytest.approx([math.log(1.3)] * 6)
    assert pairs(rounds, "now", "now", candidate_is_control=True).values == pytest.approx([0.0] * 6)


def test_the_order_in_which_rounds_are_handed_over_does_not_matter():
    rounds = measured({"now": 100.0, "then": 130.0})
    assert pairs(rounds[::-1], "then", "now").values == pytest.approx(pairs(rounds, "then", "now").values)


def test_swapping_the_settings_swaps_the_sign():
    rounds = measured({"now": 100.0, "then": 130.0})
    assert pairs(rounds, "now", "then").values == pytest.approx(pairs(rounds, "then", "now").swapped().values)


def test_a_block_with_a_missing_round_is_named_and_says_nothing():
    rounds = measured({"now": 100.0, "then": 130.0})
    lost = next(one for one in rounds if one.slot.block == 2 and one.slot.setting == "then")
    both = pairs([one for one in rounds if one is not lost], "then", "now")
    assert len(both.log_ratios) == 5
    assert both.incomplete_blocks == (2,)
    # The control's blocks do not need the candidate.
    assert (
        len(pairs([one for one in rounds if one is not lost], "now", "now", candidate_is_control=True).log_ratios) == 6
    )


@settings(max_examples=25)
@example([0.0, 0.0, 0.0, 0.0, 1.0, 1e-05])
@given(log_ratios)
def test_seen_from_the_other_setting_the_interval_is_the_mirror_image(values):
    one, other = bootstrap_effect(of(values)), bootstrap_effect(of(values).swapped())
    assert other.log == pytest.approx(-one.log, abs=1e-12)
    assert other.interval_95.low == pytest.approx(-one.interval_95.high, rel=1e-6, abs=1e-12)
    assert other.interval_90.high == pytest.approx(-one.interval_90.low, rel=1e-6, abs=1e-12)


@settings(max_examples=25)
@given(log_ratios, st.randoms(use_true_random=False), st.floats(-1, 1), st.floats(0.1, 10))
def test_the_order_of_blocks_does_not_matter_and_shift_and_scale_pass_through(values, order, shift, scale):
    plain = bootstrap_effect(of(values)).interval_95
    shuffled = list(values)
    order.shuffle(shuffled)
    assert bootstrap_effect(of(shuffled)).interval_95 == plain
    if len(set(values)) == 1 or np.std(values) < 1e-4:
        return
    moved = bootstrap_effect(of(np.array(values) * scale + shift)).interval_95
    assert moved.low == pytest.approx(plain.low * scale + shift, rel=1e-6, abs=1e-6)
    assert moved.high == pytest.approx(plain.high * scale + shift, rel=1e-6, abs=1e-6)


@given(log_ratios)
@settings(max_examples=25)
def test_a_narrower_confidence_gives_a_narrower_interval_around_the_mean(values):
    effect = bootstrap_effect(of(values))
    assert (
        effect.interval_95.low
        <= effect.interval_90.low
        <= effect.log
        <= effect.interval_90.high
        <= effect.interval_95.high
    )
    assert effect.ratio == pytest.approx(float(stats.gmean(np.exp(values))))


def test_another_seed_moves_the_interval_a_little():
    """Up to nine blocks it moves nothing, as all resamples are counted."""
    few = np.random.default_rng(1).normal(size=9)
    assert bootstrap_effect(of(few), seed=0) == bootstrap_effect(of(few), seed=1)
    values = np.random.default_rng(1).normal(size=10)
    widths = [
        np.ptp([(one := bootstrap_effect(of(values), seed=seed).interval_95).low, one.high]) for seed in range(12)
    ]
    assert len(set(widths)) > 1
    assert np.std(widths) < 0.03 * np.mean(widths)


def test_many_blocks_give_the_interval_of_scipys_bootstrap_and_of_student():
    values = np.random.default_rng(2).normal(0.1, 1, size=200)
    seen = bootstrap_effect(of(values)).interval_95
    bca = stats.bootstrap((values,), np.mean, n_resamples=4_999, rng=np.random.default_rng(0)).confidence_interval
    student = stats.t.interval(0.95, 199, loc=values.mean(), scale=stats.sem(values))
    width = student[1] - student[0]
    assert seen.low == pytest.approx(bca.low, abs=0.06 * width)
    assert seen.high == pytest.approx(bca.high, abs=0.06 * width)
    assert (seen.low, seen.high) == pytest.approx(student, abs=0.04 * width)


@pytest.mark.parametrize("num_blocks", [4, 5, 6])
def test_counting_all_resamples_is_what_drawing_every_sequence_of_blocks_gives(num_blocks):
    values = np.random.default_rng(num_blocks).normal(size=num_blocks)
    resamples = values[np.array(list(itertools.product(range(num_blocks), repeat=num_blocks)))]
    errors = resamples.std(axis=1, ddof=1) / math.sqrt(num_blocks)
    is_flat = np.ptp(resamples, axis=1) == 0
    t_stars = np.where(is_flat, np.inf, np.abs(resamples.mean(axis=1) - values.mean()) / np.where(is_flat, 1, errors))
    effect = bootstrap_effect(of(values))
    for confidence, interval in ((0.95, effect.interval_95), (0.90, effect.interval_90)):
        reach = np.quantile(t_stars, confidence, method="inverted_cdf") * effect.deviation / math.sqrt(num_blocks)
        assert interval.high == pytest.approx(values.mean() + reach)
        assert interval.low == pytest.approx(values.mean() - reach)


def test_equal_log_ratios_have_an_interval_of_one_point_and_few_blocks_an_endless_one():
    assert bootstrap_effect(of([0.1] * 6)).interval_95.high == pytest.approx(0.1)
    for few in ([0.1], [0.1, 0.12], [0.1, 0.12, 0.3]):
        effect = bootstrap_effect(of(few))
        assert effect.interval_95.high == math.inf
        assert effect.interval_95.low == -math.inf
    with pytest.raises(ValueError, match=r"^an effect needs at least one block"):
        bootstrap_effect(of([]))


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("num_blocks", [6, 8, 12])
def test_intervals_hold_the_true_effect_as_often_as_they_promise(noise, num_blocks):
    draws = np.random.default_rng(num_blocks)
    num = 300
    effects = [bootstrap_effect(of(0.1 + NOISES[noise](draws, num_blocks))) for _ in range(num)]
    for confidence, name in ((0.95, "interval_95"), (0.90, "interval_90")):
        held = np.mean([getattr(one, name).low <= 0.1 <= getattr(one, name).high for one in effects])
        # Three standard deviations of a count of 300.
        assert held >= confidence - 3 * math.sqrt(confidence * (1 - confidence) / num)
    # Not by being endless: with 12 blocks as wide as Student's, with 6 not twice as wide.
    t_stars = [(one.interval_95.high - one.log) / one.deviation * math.sqrt(num_blocks) for one in effects]
    assert np.median(t_stars) < (1.2 if num_blocks == 12 else 1.6) * stats.t.ppf(0.975, num_blocks - 1)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("bias", [0.0, 0.5, 3.0])
def test_the_noise_floor_bounds_what_equal_settings_differ_by(noise, bias):
    draws = np.random.default_rng(7)
    floors = [noise_floor(of(bias + NOISES[noise](draws, 8))) for _ in range(300)]
    assert np.mean([one.bound_log >= bias for one in floors]) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 300)
    assert all(one.bound_log >= abs(one.effect.log) for one in floors)


def test_the_noise_floor_is_the_same_whichever_entry_is_called_the_control():
    values = np.random.default_rng(3).normal(size=8)
    assert noise_floor(of(values)).bound_log == pytest.approx(noise_floor(of(-values)).bound_log)


def test_the_noise_floor_becomes_lower_with_more_blocks_and_is_endless_for_few():
    draws = np.random.default_rng(4)
    few, many = (np.mean([noise_floor(of(draws.normal(size=num))).bound_log for _ in range(40)]) for num in (6, 24))
    assert many < 0.6 * few
    assert noise_floor(of([0.01, 0.02])).bound_log == math.inf
