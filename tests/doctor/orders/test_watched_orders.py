"""What `watch` saw, judged by the same rules."""

from __future__ import annotations

import dataclasses

import pytest

from headrace.doctor import catalogue
from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces, PassTrace
from headrace.doctor.evidence.splits import split_overlap
from headrace.doctor.watch.orders import counts_of, orders_of, watched_orders

PASS = PassTrace(
    started_s=0.0,
    wall_s=1.0,
    first_wait_s=0.1,
    wait_s=0.1,
    longest_waits_s=(),
    num_batches=10,
    num_samples=100,
    is_exhausted=True,
    order_hash=7,
    num_worker_starts=0,
    num_steps=10,
)
LOADER = LoaderTrace(
    number=0,
    where="train.py:5",
    kind="DataLoader",
    role="train",
    dataset_kind="train.Photos",
    num_samples=100,
    batch_size=10,
    drop_last=False,
    num_workers=0,
    persistent_workers=False,
    sampler_kind="DistributedSampler",
    shuffles=True,
    has_set_epoch=True,
    num_set_epochs=0,
    is_distributed=True,
    iter_places=(("train.py:20", 2),),
    passes=(PASS, PASS),
    num_passes=2,
    num_drawn=100,
    root="a",
)


def judge(code, seen):
    return catalogue.rule(code).judge(seen)


def traces(*loaders, overlaps=()):
    return LoaderTraces(
        script="train.py", wall_s=9.0, rank=0, world_size=1, loaders=loaders, overlaps=overlaps, outcome="finished"
    )


def test_two_equal_passes_without_set_epoch_are_told_at_the_loop():
    (seen,) = watched_orders(traces(LOADER))
    (found,) = judge("HR607", seen)
    assert (found.severity, found.where) == ("error", "train.py:20")
    assert not judge("HR606", seen)
    assert not judge("HR612", seen)


def test_a_sampler_that_was_told_each_epoch_is_healthy():
    other = dataclasses.replace(PASS, order_hash=8)
    seen = orders_of(dataclasses.replace(LOADER, num_set_epochs=2, passes=(PASS, other)))
    assert not judge("HR607", seen)
    assert not judge("HR606", seen)


def test_a_sampler_of_ones_own_that_repeats_is_a_weak_shuffle():
    seen = orders_of(dataclasses.replace(LOADER, has_set_epoch=False, sampler_kind="Own"))
    assert [found.severity for found in judge("HR606", seen)] == ["warning"]


def test_a_loader_that_does_not_shuffle_or_was_left_early_says_nothing():
    assert not judge("HR607", orders_of(dataclasses.replace(LOADER, shuffles=False)))
    assert orders_of(dataclasses.replace(LOADER, passes=(PASS,))) is None
    assert orders_of(dataclasses.replace(LOADER, passes=(PASS, dataclasses.replace(PASS, is_exhausted=False)))) is None
    assert orders_of(dataclasses.replace(LOADER, passes=(dataclasses.replace(PASS, order_hash=None),) * 2)) is None


def test_an_empty_second_pass_is_an_exhausted_loader():
    empty = dataclasses.replace(PASS, num_batches=0, num_samples=0)
    (found,) = judge("HR605", counts_of(dataclasses.replace(LOADER, passes=(PASS, empty))))
    assert found.message == "Photos yields 100 samples in the first epoch and none in the second"


def test_an_evaluation_loader_that_meets_its_training_loader():
    val = dataclasses.replace(LOADER, number=1, role="evaluation", where="train.py:6", num_drawn=20)
    seen = split_overlap(traces(LOADER, val, overlaps=((0, 1, 20, (3, 4)),)))
    (found,) = judge("HR614", seen)
    assert found.severity == "error"
    assert found.message.startswith(
        "all 20 samples of the loader made at train.py:6 are in the loader made at train.py:5"
    )


def test_folds_meet_the_training_loaders_of_other_folds_only():
    folds = [
        dataclasses.replace(LOADER, number=number, role="train" if number < 2 else "evaluation", num_drawn=50)
        for number in range(4)
    ]
    seen = split_overlap(traces(*folds, overlaps=((0, 3, 50, (1,)), (1, 2, 50, (2,)))))
    assert not judge("HR614", seen)


@pytest.mark.parametrize(
    ("weights_began_s", "num_passes", "is_found"),
    [(0.5, 1, True), (3.5, 1, False), (None, 1, False), (0.5, 2, False)],
)
def test_splits_that_are_drawn_anew_in_each_epoch_of_one_training(weights_began_s, num_passes, is_found):
    """Not those of trainings that begin anew, nor folds with several epochs each."""
    parts = [
        dataclasses.replace(
            LOADER,
            number=number,
            role=role,
            where=f"train.py:{5 if role == 'train' else 6}",
            num_drawn=100 if role == "train" else 20,
            num_passes=num_passes,
            passes=(dataclasses.replace(PASS, started_s=1.0 + number),),
        )
        for number, role in enumerate(("train", "evaluation") * 3)
    ]
    overlaps = ((0, 3, 16, (4, 5)), (0, 5, 12, (4,)), (2, 5, 17, (5, 6)), (4, 1, 19, (1,)))
    seen = dataclasses.replace(traces(*parts, overlaps=overlaps), weights_began_s=weights_began_s)
    found = judge("HR614", split_overlap(seen))
    assert [(one.evidence["num_shared"], one.sample_ids, one.severity) for one in found] == (
        [(17, (5, 6), "error")] if is_found else []
    )


def test_a_score_on_training_samples_beside_a_held_out_part_is_only_mentioned():
    again = dataclasses.replace(LOADER, number=1, role="evaluation", num_drawn=100)
    val = dataclasses.replace(LOADER, number=2, role="evaluation", num_drawn=20)
    seen = split_overlap(traces(LOADER, again, val, overlaps=((0, 1, 100, (0,)),)))
    assert [found.severity for found in judge("HR614", seen)] == ["info"]


def test_loaders_over_unknown_data_are_not_compared():
    assert split_overlap(traces(LOADER, dataclasses.replace(LOADER, number=1, role="evaluation", root=None))) is None


def test_a_loader_made_anew_is_judged_over_its_epochs_from_the_third_on_and_where_it_is_trained_on():
    own = dataclasses.replace(LOADER, has_set_epoch=False, sampler_kind="Own")
    for num_made, role, expected in ((2, "train", 0), (3, "train", 1), (3, "unknown", 0)):
        seen = dataclasses.replace(own, passes=(PASS,) * num_made, num_passes=num_made, num_made=num_made, role=role)
        assert len(watched_orders(traces(seen))) == expected
    assert [found.message for found in judge("HR606", *watched_orders(traces(dataclasses.replace(seen, role="train"))))]
