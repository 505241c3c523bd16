import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.statistics.pairs import pairs
from headrace.doctor.statistics.rounds import Round
from headrace.doctor.statistics.schedule import fewest_blocks, num_rounds, schedule
from headrace.doctor.statistics.signs import p_different

candidates = st.lists(st.text(min_size=1, max_size=3), max_size=4, unique=True).map(
    lambda names: [f"c{one}" for one in names]
)
blocks = st.integers(1, 9)
seeds = st.integers(0, 2**32)


def arms(slots):
    return [(one.setting, one.is_control) for one in slots]


@given(candidates, blocks, seeds)
def test_every_block_runs_every_arm_twice_around_its_middle(names, num_blocks, seed):
    slots = schedule("now", names, num_blocks=num_blocks, seed=seed)
    assert len(slots) == num_rounds(len(names), num_blocks)
    assert [one.block for one in slots] == sorted(one.block for one in slots)
    for block in range(num_blocks):
        inside = arms(one for one in slots if one.block == block)
        assert inside == inside[::-1]
        assert collections.Counter(inside) == dict.fromkeys(
            [("now", True), ("now", False), *((one, False) for one in names)], 2
        )


@given(candidates, blocks, seeds)
def test_equal_seeds_give_equal_orders_and_fewer_blocks_their_beginning(names, num_blocks, seed):
    slots = schedule("now", names, num_blocks=num_blocks, seed=seed)
    assert slots == schedule("now", names, num_blocks=num_blocks, seed=seed)
    assert slots == schedule("now", names, num_blocks=num_blocks + 2, seed=seed)[: len(slots)]


@given(candidates, blocks, seeds, st.floats(-0.1, 0.1))
def test_a_linear_drift_cancels_in_every_block(names, num_blocks, seed, slope):
    slots = schedule("now", ["then", *names], num_blocks=num_blocks, seed=seed)
    rounds = [Round(slot=slot, rate_per_s=math.exp(slope * place), began_s=place) for place, slot in enumerate(slots)]
    for both in (pairs(rounds, "then", "now"), pairs(rounds, "now", "now", candidate_is_control=True)):
        assert len(both.log_ratios) == num_blocks
        assert np.abs(both.values).max() < 1e-9


def test_either_of_two_arms_comes_first_as_often_and_blocks_do_not_know_of_each_other():
    slots = schedule("now", ["then"], num_blocks=4_000, seed=1)
    order = [arms(slots[start : start + 3]) for start in range(0, len(slots), 6)]
    firsts = np.array([one.index(("now", False)) < one.index(("then", False)) for one in order])
    assert abs(firsts.mean() - 0.5) < 4 * 0.5 / math.sqrt(4_000)
    assert abs((firsts[1:] == firsts[:-1]).mean() - 0.5) < 4 * 0.5 / math.sqrt(4_000)
    # All six orders of three arms are equally likely.
    counts = collections.Counter(tuple(one) for one in order)
    assert len(counts) == 6
    assert max(counts.values()) < 4_000 / 6 + 5 * math.sqrt(4_000 / 6)


def test_settings_with_one_name_are_refused():
    with pytest.raises(ValueError, match=r"^settings must have different names, got a, b, a$"):
        schedule("a", ["b", "a"], num_blocks=6, seed=0)


@pytest.mark.parametrize(("num_candidates", "num_blocks"), [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8)])
def test_the_fewest_blocks_are_those_with_which_the_least_p_survives_the_correction(num_candidates, num_blocks):
    assert fewest_blocks(num_candidates) == num_blocks
    least = max(num_candidates, 1) * p_different(np.ones(num_blocks))
    assert least <= 0.05 < max(num_candidates, 1) * p_different(np.ones(num_blocks - 1))
