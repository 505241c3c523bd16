"""Sums, medians and tails of waits, held against plain lists."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.watch.waits import Longest, Waits

TIMES = st.lists(st.tuples(st.floats(1e-5, 50), st.floats(1e-5, 50)), min_size=1, max_size=400)


@given(TIMES)
def test_sums_and_medians_are_those_of_the_list(steps):
    waits = Waits()
    for wait_s, own_s in steps:
        waits.add(wait_s, own_s)
    assert waits.num_steps == len(steps)
    assert waits.wait_s == pytest.approx(sum(wait for wait, _ in steps))
    assert waits.own_s == pytest.approx(sum(own for _, own in steps))
    low = statistics.median_low([wait for wait, _ in steps])
    assert waits.median_wait_s == pytest.approx(low, rel=0.2)


@given(TIMES, st.floats(0.01, 1.0))
def test_the_worst_steps_hold_what_the_largest_waits_sum_to(steps, share):
    waits = Waits()
    for step in steps:
        waits.add(*step)
    number, total_s = waits.worst(share)
    largest = sorted((wait for wait, _ in steps), reverse=True)[:number]
    assert number == max(1, round(share * len(steps)))
    assert total_s == pytest.approx(sum(largest), rel=0.2)


@given(TIMES)
def test_the_shares_of_parts_follow_the_time(steps):
    waits = Waits()
    for wait_s, _ in steps:
        waits.add(wait_s, wait_s)
    assert len(waits.shares) <= 32
    assert all(part == pytest.approx(0.5) for part in waits.shares)


def test_a_run_of_any_length_keeps_few_numbers():
    waits = Waits()
    for number in range(20_000):
        waits.add(1.0 if number >= 10_000 else 0.0, 1.0)
    assert 8 <= len(waits.shares) <= 32
    assert waits.shares[0] == 0.0
    assert waits.shares[-1] == 0.5


@given(st.lists(st.floats(0, 1e3), max_size=60))
def test_the_ten_longest(times):
    longest = Longest()
    for seconds in times:
        longest.add(seconds)
    assert list(longest.values) == sorted(times, reverse=True)[:10]


def test_of_a_hand_over_the_process_computes_at_most_all_of_it():
    waits = Waits()
    for seconds, cpu_s in ((0.5, 0.2), (0.5, 2.0), (0.0, 1.0)):
        waits.add_handover(seconds, cpu_s)
    assert (waits.handover_s, waits.handover_cpu_s, waits.num_handovers) == (1.0, 0.7, 3)
