"""Laws of the choice: what may never change it, and what may never be chosen."""

from __future__ import annotations

import dataclasses
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.choice import Contender, Limits, bars, choose
from headrace.doctor.tuning.cost import Cost

LIMITS = Limits(memory_bytes=1000, shm_bytes=100)


def as_fast(one, other):
    return abs(math.log(one.middle / other.middle)) < math.log(1.02)


def decide(present, others, need, limits=LIMITS):
    return choose(present, others, need_per_s=need, limits=limits, as_fast=as_fast)


@st.composite
def contenders(draw, setting=None, same=None, speed=None):
    middle = draw(st.floats(100, 1000)) if speed is None else speed
    width = draw(st.floats(1.001, 1.2))
    ratio = middle / 400
    return Contender(
        setting=setting or Setting(num_workers=draw(st.integers(0, 10**6))),
        cost=Cost(*(draw(st.integers(0, 3)) for _ in range(6))),
        supply_per_s=Interval(middle / width, middle * width),
        ratio=Interval(ratio / width, ratio * width),
        starved_share=draw(st.sampled_from([None, 0.0, 0.005, 0.3])),
        p99_wait_s=draw(st.sampled_from([None, 0.0001, 0.5])),
        step_s=0.02,
        memory_bytes=draw(st.sampled_from([None, 10, 2000])),
        shm_bytes=draw(st.sampled_from([None, 10, 200])),
        same_data=same or draw(st.sampled_from(["proven", "proven", "differs", "unproven"])),
    )


@st.composite
def presents(draw):
    one = draw(contenders(setting=AS_IT_IS, same="itself", speed=400))
    return dataclasses.replace(one, ratio=Interval(1.0, 1.0))


@st.composite
def fields(draw):
    others = draw(st.lists(contenders(), max_size=4, unique_by=lambda one: one.setting))
    return draw(presents()), others


NEEDS = st.none() | st.floats(50, 1200)


@given(fields(), NEEDS)
def test_what_is_chosen_is_proven_and_within_the_limits(field, need):
    present, others = field
    choice = decide(present, others, need)
    if choice.outcome == "change":
        (chosen,) = (one for one in others if one.setting == choice.setting)
        assert chosen.same_data == "proven"
        assert not any("of memory" in bar or "shared memory" in bar for bar in bars(chosen, need, LIMITS))
        assert choice.meets_need is not True or not bars(chosen, need, LIMITS)


@given(fields(), NEEDS)
def test_a_present_setting_that_is_feasible_is_kept_whatever_else_there_is(field, need):
    present, others = field
    if need is not None and not bars(present, need, LIMITS):
        assert decide(present, others, need).outcome == "keep"


@given(fields(), st.floats(50, 1200))
def test_of_feasible_settings_the_cheapest_is_chosen(field, need):
    present, others = field
    choice = decide(present, others, need)
    if choice.outcome == "change" and choice.meets_need:
        (chosen,) = (one for one in others if one.setting == choice.setting)
        cheaper = [one for one in others if one.cost < chosen.cost and not bars(one, need, LIMITS)]
        assert all(one.ratio.low <= 1.0 for one in cheaper), "a cheaper one that surely is faster was passed over"


@settings(max_examples=300)
@given(fields(), NEEDS, st.data())
def test_a_dominated_setting_changes_nothing(field, need, data):
    present, others = field
    if not others:
        return
    better = data.draw(st.sampled_from(others))
    slower = data.draw(st.floats(0.3, 0.9))
    worse = dataclasses.replace(
        better,
        setting=Setting(num_workers=-1),
        cost=better.cost._replace(num_processes=better.cost.num_processes + 1),
        supply_per_s=Interval(better.supply_per_s.low * slower, better.supply_per_s.high * slower),
        ratio=Interval(better.ratio.low * slower, better.ratio.high * slower),
    )
    place = data.draw(st.integers(0, len(others)))
    assert decide(present, [*others[:place], worse, *others[place:]], need) == decide(present, others, need)


@given(fields(), NEEDS, st.randoms())
def test_the_order_of_trials_decides_nothing(field, need, random):
    present, others = field
    shuffled = list(others)
    random.shuffle(shuffled)
    assert decide(present, shuffled, need) == decide(present, others, need)


@given(fields(), NEEDS, st.data())
def test_a_setting_whose_data_differ_might_as_well_not_be_there(field, need, data):
    present, others = field
    wrong = data.draw(
        contenders(setting=Setting(num_workers=-2), same=data.draw(st.sampled_from(["differs", "unproven"])))
    )
    assert decide(present, [*others, wrong], need).setting == decide(present, others, need).setting


@given(fields(), NEEDS, st.sampled_from([0.25, 2.0, 1024.0]))
def test_another_unit_of_rates_changes_nothing(field, need, factor):
    def scaled(one):
        return dataclasses.replace(
            one, supply_per_s=Interval(one.supply_per_s.low * factor, one.supply_per_s.high * factor)
        )

    present, others = field
    there = decide(scaled(present), [scaled(one) for one in others], None if need is None else need * factor)
    here = decide(present, others, need)
    assert (there.outcome, there.setting, there.simpler) == (here.outcome, here.setting, here.simpler)


@given(fields(), st.floats(50, 1200), st.floats(1.0, 4.0))
def test_a_lesser_need_is_met_by_what_meets_a_greater_one(field, need, factor):
    present, others = field
    more, less = decide(present, others, need), decide(present, others, need / factor)
    if more.meets_need:
        assert less.meets_need
        if more.outcome == "keep":
            assert less.outcome == "keep"


@given(fields(), NEEDS)
def test_what_does_not_meet_the_need_is_said_to_be_bound_by_something(field, need):
    choice = decide(*field, need)
    if choice.meets_need is False and choice.outcome != "inconclusive":
        assert choice.binding
    assert choice.meets_need is None or need is not None


@given(fields(), NEEDS)
def test_a_change_without_a_broken_limit_is_surely_faster_or_feasible_where_the_present_one_is_not(field, need):
    present, others = field
    choice = decide(present, others, need)
    if choice.outcome == "change":
        (chosen,) = (one for one in others if one.setting == choice.setting)
        own = bars(present, need, LIMITS)
        assert chosen.ratio.low > 1.0 or choice.meets_need or any("memory" in bar for bar in own)


def make(workers, supply, *, ratio=None, width=1.01, **more):
    return Contender(
        setting=Setting(num_workers=workers) if workers != 2 else AS_IT_IS,
        cost=Cost(0, 0, workers, workers * 2, 2, 0),
        supply_per_s=Interval(supply / width, supply * width),
        ratio=Interval(1.0, 1.0)
        if workers == 2
        else Interval((ratio or supply / 400) / width, (ratio or supply / 400) * width),
        same_data="itself" if workers == 2 else more.pop("same_data", "proven"),
        **more,
    )


def test_the_simplest_of_enough_is_chosen_and_not_the_fastest():
    choice = decide(make(2, 400), [make(4, 800), make(8, 1600)], 700)
    assert (choice.outcome, choice.setting, choice.meets_need) == ("change", Setting(num_workers=4), True)


def test_where_nothing_is_enough_the_cheapest_of_the_fastest_is_taken_and_says_what_binds():
    choice = decide(make(2, 400), [make(4, 800), make(8, 805)], 2000)
    assert (choice.outcome, choice.setting, choice.meets_need) == ("change", Setting(num_workers=4), False)
    assert "2,000/s are needed" in choice.binding[0]


def test_a_present_setting_that_may_meet_the_need_is_not_left_for_a_lucky_draw():
    choice = decide(make(2, 400, width=1.1), [make(4, 405, ratio=1.001)], 390)
    assert choice.outcome == "inconclusive"
    assert "it may meet the need or not" in choice.why


def test_a_present_setting_beyond_the_memory_is_left_even_for_a_slower_one():
    choice = decide(make(2, 400, memory_bytes=5000), [make(1, 390, memory_bytes=10)], 300)
    assert (choice.outcome, choice.setting) == ("change", Setting(num_workers=1))


def test_fewer_workers_that_would_do_are_mentioned_and_the_present_ones_kept():
    choice = decide(make(2, 400), [make(1, 390)], 300)
    assert (choice.outcome, choice.simpler) == ("keep", Setting(num_workers=1))


def test_without_a_need_equal_settings_are_kept():
    choice = decide(make(2, 400), [make(4, 403)], None)
    assert (choice.outcome, choice.meets_need) == ("keep", None)
