"""Verdicts on simulated machines: whole schedules, from rates to outcomes."""

import collections
import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.doctor.statistics.comparison import compare
from headrace.doctor.statistics.drift import theil_sen
from headrace.doctor.statistics.noise import noise_floor
from headrace.doctor.statistics.pairs import Pairs
from headrace.doctor.statistics.rounds import Round
from headrace.doctor.statistics.schedule import schedule
from headrace.doctor.statistics.verdict import judge

OPPOSITE = {"faster": "slower", "slower": "faster", "same": "same", "inconclusive": "inconclusive"}
ROUND_S = 13.0
log_ratios = st.lists(st.floats(-0.3, 0.3).map(lambda value: round(value, 5)), min_size=1, max_size=9)


def normal(draws, num):
    return draws.normal(size=num)


def heavy(draws, num):
    return draws.standard_t(2, size=num)


def drifting(draws, num):
    """Cooling down to a slower clock: far more than the noise, and not linear."""
    return draws.normal(size=num) - 8 * (1 - np.exp(-3 * np.arange(num) / num))


def wandering(draws, num):
    """A neighbour on the machine whose load walks up and down."""
    return draws.normal(size=num) + np.cumsum(draws.normal(scale=0.7, size=num))


def interrupted(draws, num):
    """A backup that takes half of the machine for a while."""
    start = draws.integers(num)
    busy = (np.arange(num) >= start) & (np.arange(num) < start + num // 5)
    return draws.normal(size=num) - 30 * busy


MACHINES = [normal, heavy, drifting, wandering, interrupted]


def measured(effects, machine, *, noise, num_blocks, seed):
    """The rounds of a whole schedule; `effects` are the log ratios of the candidates to the present setting."""
    slots = schedule("now", list(effects), num_blocks=num_blocks, seed=seed)
    draws = np.random.default_rng([seed, 1])
    logs = (
        math.log(900) + noise * machine(draws, len(slots)) + [{"now": 0.0, **effects}[slot.setting] for slot in slots]
    )
    return [
        Round(slot=slot, rate_per_s=math.exp(log), began_s=ROUND_S * place)
        for place, (slot, log) in enumerate(zip(slots, logs))
    ]


def outcomes(effects, machine, *, noise=0.01, num_blocks=8, num=300):
    """How often each outcome came, by candidate."""
    counts = {name: collections.Counter() for name in effects}
    for seed in range(num):
        rounds = measured(effects, machine, noise=noise, num_blocks=num_blocks, seed=seed)
        for name, verdict in compare(rounds, present="now").verdicts.items():
            counts[name][verdict.outcome] += 1
    return counts


def of(values):
    return Pairs(log_ratios=tuple(float(one) for one in values))


QUIET = noise_floor(of([0.002, -0.001, 0.001, -0.002, 0.0015, -0.0015, 0.0005]))


def verdict(values, *, floor=QUIET, drift=None, **options):
    return judge({"then": of(values)}, floor=floor, drift=drift, block_s=60.0, **options)["then"]


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_equal_settings_are_seldom_called_different(machine):
    for noise, num_blocks in ((0.01, 6), (0.05, 8)):
        count = outcomes({"then": 0.0}, machine, noise=noise, num_blocks=num_blocks, num=150)["then"]
        assert count["faster"] + count["slower"] <= 0.05 * 150


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_of_three_equal_candidates_hardly_any_is_called_different(machine):
    wrong = 0
    for seed in range(100):
        rounds = measured({"a": 0.0, "b": 0.0, "c": 0.0}, machine, noise=0.02, num_blocks=7, seed=seed)
        found = compare(rounds, present="now").verdicts
        wrong += any(one.outcome in {"faster", "slower"} for one in found.values())
    assert wrong <= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "num_blocks", "power"), [(0.01, 6, 0.99), (0.02, 6, 0.90), (0.03, 8, 0.85), (0.03, 12, 0.95)]
)
def test_ten_percent_are_found_in_their_direction(noise, num_blocks, power):
    for effect, direction in ((math.log(1.1), "faster"), (-math.log(1.1), "slower")):
        count = outcomes({"then": effect}, normal, noise=noise, num_blocks=num_blocks, num=150)["then"]
        assert count[direction] >= (power - 3 * math.sqrt(power * (1 - power) / 150)) * 150
        assert count[OPPOSITE[direction]] == 0
        assert count["same"] == 0


@pytest.mark.slow
def test_equal_settings_on_a_quiet_machine_are_called_the_same():
    assert outcomes({"then": 0.0}, normal, noise=0.005, num_blocks=8, num=150)["then"]["same"] >= 0.95 * 150
    assert outcomes({"then": 0.0}, normal, noise=0.01, num_blocks=8, num=150)["then"]["same"] >= 0.8 * 150


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "effect"), [(0.003, 0.02), (0.01, 0.02), (0.02, 0.03), (0.03, 0.045), (0.03, 0.06)])
def test_settings_that_differ_by_more_than_the_margin_are_seldom_called_the_same(noise, effect):
    """The margin is the noise floor where that is more than 2 %: "same within 4 %" is true of 3 %."""
    wrong = 0
    for seed in range(200):
        rounds = measured({"then": math.log1p(effect)}, normal, noise=noise, num_blocks=8, seed=seed)
        found = compare(rounds, present="now").verdicts["then"]
        wrong += found.outcome == "same" and found.margin <= 1 + effect
        assert found.outcome != "same" or found.margin <= 1.05
    assert wrong <= (0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)) * 200


@pytest.mark.slow
@pytest.mark.parametrize("machine", [drifting, wandering, interrupted])
def test_blocks_alone_keep_a_restless_machine_from_telling_equal_settings_apart(machine):
    """Without the guard against drift, which would forbid most verdicts here anyway."""
    wrong = right = 0
    for seed in range(150):
        for effect in (0.0, math.log(1.1)):
            rounds = measured({"then": effect}, machine, noise=0.01, num_blocks=8, seed=seed)
            found = compare(rounds, present="now")
            bare = judge(found.pairs, floor=found.floor, drift=None, block_s=1.0)["then"].outcome
            wrong += effect == 0 and bare in {"faster", "slower"}
            right += effect > 0 and bare == "faster"
    assert wrong <= 0.05 * 150
    assert machine is interrupted or right >= 0.9 * 150


@settings(max_examples=40)
@given(log_ratios, log_ratios)
def test_swapping_the_settings_gives_the_reciprocal_verdict(values, control):
    floor = noise_floor(of(control))
    one, other = verdict(values, floor=floor), verdict([-value for value in values], floor=floor)
    assert other.outcome == OPPOSITE[one.outcome]
    assert other.ratio == pytest.approx(1 / one.ratio)
    assert other.ratio_interval.low == pytest.approx(
        1 / one.ratio_interval.high if one.ratio_interval.high < math.inf else 0
    )
    assert (other.p_different, other.p_same, other.settling) == (one.p_different, one.p_same, one.settling)


@settings(max_examples=25)
@given(st.floats(0.01, 100), st.integers(0, 1_000))
def test_the_unit_of_the_rates_does_not_matter(scale, seed):
    rounds = measured({"then": 0.05}, normal, noise=0.02, num_blocks=6, seed=seed)
    scaled = [dataclasses.replace(one, rate_per_s=one.rate_per_s * scale) for one in rounds]
    one, other = (compare(some, present="now").verdicts["then"] for some in (rounds, scaled))
    assert other.outcome == one.outcome
    assert other.ratio == pytest.approx(one.ratio)
    assert other.ratio_interval.low == pytest.approx(one.ratio_interval.low)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.integers(0, 1_000))
def test_the_order_in_which_rounds_are_handed_over_does_not_matter(order, seed):
    rounds = measured({"a": 0.05, "b": 0.0}, normal, noise=0.02, num_blocks=6, seed=seed)
    one = compare(rounds, present="now")
    shuffled = list(rounds)
    order.shuffle(shuffled)
    assert compare(shuffled, present="now").verdicts == one.verdicts


@settings(max_examples=40)
@given(log_ratios, log_ratios)
def test_a_verdict_says_what_would_settle_it_or_is_settled(values, control):
    one = verdict(values, floor=noise_floor(of(control)))
    assert (one.settling is not None) == (one.outcome == "inconclusive")
    if one.settling is not None and one.settling.more_blocks is not None:
        assert one.settling.more_blocks >= 1
        assert one.settling.more_s == 60.0 * one.settling.more_blocks
        assert one.num_blocks + one.settling.more_blocks >= 6


@settings(max_examples=40)
@given(st.lists(log_ratios, min_size=2, max_size=4))
def test_company_never_makes_a_candidate_different(several):
    together = judge({str(place): of(one) for place, one in enumerate(several)}, floor=QUIET, drift=None, block_s=1.0)
    for place, values in enumerate(several):
        alone, beside = verdict(values), together[str(place)]
        assert beside.p_different >= alone.p_different
        assert beside.outcome in {alone.outcome, "inconclusive"}
        assert beside.ratio_interval == alone.ratio_interval


def test_clear_cases():
    wiggle = np.array([0.002, -0.001, 0.001, -0.002, 0.0015, -0.0015, 0.0005])
    assert verdict(wiggle + 0.1).outcome == "faster"
    assert verdict(wiggle - 0.1).outcome == "slower"
    assert verdict(wiggle).outcome == "same"
    assert verdict(wiggle + 0.02).outcome == "inconclusive"
    assert verdict(wiggle).margin == pytest.approx(1.02)
    assert verdict(wiggle + 0.1).ratio == pytest.approx(math.exp(0.1 + wiggle.mean()))


def test_sameness_needs_the_interval_and_the_test():
    # One block far out: the exact test is sure (its least p with 6 blocks), the interval reaches over the margin.
    far_out = verdict([0.003, 0.0, 0.005, 0.004, 0.002, -0.025])
    assert far_out.p_same <= 0.05
    assert far_out.outcome == "inconclusive"
    # Four blocks that agree: the interval is narrow, the exact test cannot be sure.
    few = verdict([0.001, -0.001, 0.0005, -0.0005])
    assert few.ratio_interval.high < 1.02
    assert few.p_same == 1 / 2**4
    assert few.outcome == "inconclusive"
    assert verdict([0.001, -0.001, 0.0005, -0.0005, 0.0]).outcome == "same"


def test_what_is_sure_alone_is_less_sure_in_company():
    different = [0.1, 0.101, 0.099, 0.102, 0.098, 0.1]
    equal = [0.001, -0.001, 0.0005, -0.0005, 0.0]
    for values, alone, num_candidates in ((different, "faster", 3), (equal, "same", 2)):
        assert verdict(values).outcome == alone
        candidates = {str(place): of(values) for place in range(num_candidates)}
        for one in judge(candidates, floor=QUIET, drift=None, block_s=60.0).values():
            assert one.outcome == "inconclusive"
            assert one.settling.reason == "few blocks"
            assert one.settling.more_blocks == 7 - len(values)


def test_five_blocks_are_too_few_for_a_difference_and_one_more_would_do():
    one = verdict([0.1, 0.101, 0.099, 0.102, 0.098])
    assert one.outcome == "inconclusive"
    assert one.settling.reason == "few blocks"
    assert one.settling.more_blocks == 1
    assert one.settling.more_s == 60.0


def test_a_single_block_asks_for_the_fewest():
    settling = verdict([0.1]).settling
    assert (settling.reason, settling.more_blocks) == ("few blocks", 5)


def test_an_effect_at_the_margin_is_settled_by_no_number_of_blocks():
    settling = verdict(math.log(1.02) + np.array([0.01, -0.01] * 4)).settling
    assert (settling.reason, settling.more_blocks, settling.more_s) == ("noise", None, None)


def test_a_noisy_machine_hides_a_difference_and_never_makes_settings_the_same():
    floor = noise_floor(of([0.2, -0.15, 0.1, -0.25, 0.05, -0.1, 0.15]))
    assert floor.bound_log > 0.05
    assert (
        verdict([0.08 + one for one in (0.002, -0.001, 0.001, -0.002, 0.0, 0.001)], floor=floor).outcome
        == "inconclusive"
    )
    assert verdict([0.002, -0.001, 0.001, -0.002, 0.0, 0.001], floor=floor).outcome == "inconclusive"
    # Who asks for "within 50 %" gets an answer within 50 %.
    assert verdict([0.002, -0.001, 0.001, -0.002, 0.0, 0.001], floor=floor, least_margin=0.5).outcome == "same"


@pytest.mark.slow
@pytest.mark.parametrize("effect", [math.log(1.1), 0.0])
def test_as_many_more_blocks_as_were_said_often_settle_it(effect):
    settled = asked = 0
    for seed in range(60):
        before = compare(
            measured({"then": effect}, normal, noise=0.04, num_blocks=6, seed=seed), present="now"
        ).verdicts["then"]
        if before.settling is None or before.settling.more_blocks is None or before.settling.more_blocks > 60:
            continue
        asked += 1
        num_blocks = 6 + before.settling.more_blocks
        after = compare(
            measured({"then": effect}, normal, noise=0.04, num_blocks=num_blocks, seed=seed), present="now"
        ).verdicts["then"]
        settled += after.settling is None
    assert asked >= 20
    assert settled >= 0.4 * asked


def test_drift_beyond_half_of_the_effect_takes_a_difference_back():
    times = 13.0 * np.arange(24)
    wiggle = np.array([0.002, -0.001, 0.001, -0.002, 0.0015, -0.0015, 0.0005])

    def drift(total):
        return theil_sen(times, np.exp(total * times / times[-1] + 0.001 * np.cos(7 * times)))

    for sign in (1, -1):
        assert verdict(wiggle + 0.1, drift=drift(sign * 0.04)).outcome == "faster"
        taken_back = verdict(wiggle + 0.1, drift=drift(sign * 0.06))
        assert taken_back.outcome == "inconclusive"
        assert (taken_back.settling.reason, taken_back.settling.more_blocks, taken_back.settling.more_s) == (
            "drift",
            0,
            7 * 60.0,
        )
        assert verdict(wiggle, drift=drift(sign * 0.015)).outcome == "same"
        assert verdict(wiggle, drift=drift(sign * 0.03)).outcome == "inconclusive"


def test_a_trend_that_chance_would_give_takes_nothing_back():
    draws = np.random.default_rng(2)
    drift = theil_sen(np.arange(6.0), np.exp(draws.normal(scale=0.2, size=6)))
    assert abs(drift.total_log) > 0.05
    assert not drift.is_certain
    assert verdict([0.1, 0.101, 0.099, 0.102, 0.098, 0.1], drift=drift).outcome == "faster"


def test_a_comparison_keeps_everything_and_knows_what_a_block_takes():
    rounds = measured({"a": 0.1, "b": 0.0}, normal, noise=0.2, num_blocks=7, seed=3)
    found = compare(rounds, present="now")
    assert {name: len(one.rates_per_s) for name, one in found.settings.items()} == {"now": 28, "a": 14, "b": 14}
    assert {name: len(one.log_ratios) for name, one in found.pairs.items()} == {"a": 7, "b": 7}
    assert found.drift.duration_s <= ROUND_S * 55
    settling = found.verdicts["a"].settling
    assert settling.more_s == pytest.approx(settling.more_blocks * 8 * ROUND_S)


def test_a_candidate_without_a_whole_block_has_no_verdict_and_nobody_has_one_without_a_floor():
    rounds = measured({"a": 0.1, "b": 0.0}, normal, noise=0.01, num_blocks=7, seed=3)
    without_b = [one for one in rounds if one.slot.setting != "b" or one.slot.block == 0][:-1]
    assert set(compare([one for one in without_b if one.slot.setting != "b"], present="now").verdicts) == {"a"}
    without_control = [one for one in rounds if not one.slot.is_control]
    found = compare(without_control, present="now")
    assert found.floor is None
    assert found.verdicts == {}
    assert set(found.pairs) == {"a", "b"}
    assert compare(rounds[:1], present="now").verdicts == {}
