"""Decisions between rules about orders and ranks: one cause is told once, and healthy habits not at all."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor import catalogue
from headrace.doctor.evidence.orders import DrawnPass, LabelOrder, Orders
from headrace.doctor.evidence.ranks import RankShare
from headrace.doctor.evidence.splits import SharedSamples, SplitOverlap
from headrace.doctor.made_up.orders import counts, labels, orders, passes, ranks
from headrace.doctor.questions.ranks import is_padding, num_repeats

ABOUT_ORDERS = ("HR606", "HR607", "HR612", "HR613")


def judge(code, *evidence):
    return catalogue.rule(code).judge(*evidence)


def loud(code, *evidence):
    return [found for found in judge(code, *evidence) if found.severity != "info"]


HASHES = st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=4)


@given(
    order=HASHES,
    batches=HASHES,
    draws=st.sampled_from(["each-pass", "once", "never", "unknown"]),
    groups=st.booleans(),
    holder=st.sampled_from([None, "Own"]),
    told=st.booleans(),
    follows=st.sampled_from([None, True, False]),
    loop=st.sampled_from([None, "a.py:1"]),
    role=st.sampled_from([None, "train", "evaluation"]),
)
def test_at_most_one_rule_speaks_of_an_order_and_none_in_evaluation(
    order, batches, draws, groups, holder, told, follows, loop, role
):
    seen = Orders(
        sampler="Own",
        passes=tuple(
            DrawnPass(
                num_batches=10,
                num_samples=100,
                num_different=100,
                order_hash=one,
                batches_hash=one * 10 + batches[place % len(batches)] if one > 1 else one,
            )
            for place, one in enumerate(order)
        ),
        draws=draws,
        groups_batches=groups,
        batch_size=10,
        set_epoch_of=holder,
        epochs_told=told and holder is not None,
        order_follows_epoch=follows if holder else None,
        epoch_loop_at=loop,
        role=role,
    )
    found = [code for code in ABOUT_ORDERS if judge(code, seen)]
    assert len(found) <= 1
    assert not (role == "evaluation" and found)


def test_a_set_epoch_that_changes_nothing_is_a_weak_shuffle():
    seen = orders(passes=passes("a", "a"), set_epoch_of="Own", epochs_told=True, order_follows_epoch=False)
    assert not judge("HR607", seen)
    (found,) = judge("HR606", seen)
    assert "set_epoch is called and changes nothing" in found.message


def test_a_short_data_set_may_have_the_same_order_twice():
    assert not judge("HR606", orders(passes=passes("a", "a", num_samples=4, batch_size=2)))


@pytest.mark.parametrize("role", [None, "evaluation"])
def test_sorted_classes_are_judged_for_training_only(role):
    seen = orders(
        draws="never", is_sequential=True, labels=labels(10.0, per_batch=1.0), role=role, passes=passes("a", "a")
    )
    assert not judge("HR606", seen)


def test_recordings_in_which_classes_take_turns_are_not_called_sorted():
    turns = LabelOrder(num_labels=2, mean_run=10.0, random_run=2.0, labels_per_batch=1.0, random_per_batch=2.0)
    seen = orders(
        draws="never", is_sequential=True, labels=turns, passes=passes("a", "a", num_samples=2000, batch_size=10)
    )
    assert not judge("HR606", seen)


def test_natural_groups_in_a_random_order_are_only_mentioned():
    seen = orders(groups_batches=True, batches_are_even=False, passes=passes("a", "b", batches="xx"))
    assert [found.severity for found in judge("HR612", seen)] == ["info"]


def test_a_long_stream_with_more_batches_than_it_says_need_not_end():
    seen = counts(12, said=10)
    cut = dataclasses.replace(seen, single=(dataclasses.replace(seen.single[0], is_complete=False),))
    assert judge("HR604", cut)[0].message == "len(loader) says 10 batches, more than 10 come"
    few = dataclasses.replace(cut, said_batches=50)
    assert not judge("HR604", few)


def test_a_stream_that_is_wound_back_by_hand_is_only_mentioned():
    assert [found.severity for found in judge("HR605", counts(5, 0, said=None, resets_at="a.py:3"))] == ["info"]


@given(st.integers(1, 60), st.integers(2, 8), st.integers(1, 9))
def test_what_torch_pads_is_padding_and_no_overlap(rows, world, batch_size):
    import torch
    from torch.utils.data import DistributedSampler, TensorDataset

    data = TensorDataset(torch.zeros(rows))
    parts = [list(DistributedSampler(data, world, rank, shuffle=False)) for rank in range(world)]
    sets = [set(part) for part in parts]
    seen = dataclasses.replace(
        ranks(*map(len, parts)),
        shares=tuple(
            RankShare(num_batches=-(-len(part) // batch_size), num_samples=len(part), num_different=len(set(part)))
            for part in parts
        ),
        overlap=tuple(tuple(len(one & other) for other in sets) for one in sets),
        num_union=len(set().union(*sets)),
        num_rows=rows,
        batch_size=batch_size,
        role="evaluation",
    )
    assert num_repeats(seen) == -rows % world
    assert not loud("HR608", seen)
    assert not loud("HR609", seen)
    assert bool(loud("HR610", seen)) == is_padding(seen)
    assert is_padding(seen) == (rows % world != 0)


def test_ranks_that_draw_with_replacement_meet_by_chance():
    seen = ranks(40, 40, shared=15, num_rows=100)
    again = dataclasses.replace(seen, shares=tuple(dataclasses.replace(one, num_samples=50) for one in seen.shares))
    assert judge("HR608", seen)
    assert not judge("HR608", again)


def test_uneven_ranks_in_evaluation_are_only_mentioned():
    seen = ranks(51, 50, num_batches=(6, 5), role="evaluation")
    assert [found.severity for found in judge("HR609", seen)] == ["info"]


@pytest.mark.parametrize(("number", "severity"), [(1, "info"), (5, "warning"), (60, "error")])
def test_equal_contents_weigh_by_their_share(number, severity):
    pair = SharedSamples(
        train="train", evaluation="val", num_train=500, num_evaluation=100, num_shared=number, by="content"
    )
    assert [found.severity for found in judge("HR614", SplitOverlap(pairs=(pair,)))] == [severity]


def test_a_single_shared_row_is_an_error_and_each_evaluation_loader_is_told():
    pair = SharedSamples(train="train", evaluation="val", num_train=500, num_evaluation=100, num_shared=1)
    other = dataclasses.replace(pair, evaluation="test")
    found = judge("HR614", SplitOverlap(pairs=(pair, other)))
    assert [(one.severity, one.where) for one in found] == [("error", "val"), ("error", "test")]
