"""Loaders whose truth is written down, through the whole conclusion."""

import dataclasses

import pytest

from headrace.doctor.measuring.decomposition import decompose
from headrace.doctor.measuring.judging import judge
from headrace.doctor.measuring.made_up import WARM, World, machine
from headrace.doctor.measuring.plain import fewer_are_faster
from headrace.doctor.measuring.waiting import find_waiting

LIMITED = {
    "read": World(wall_ms={"read": 9, "decode": 1}),
    "decode": World(wall_ms={"read": 1, "decode": 8, "collate": 0.1}),
    "transform": World(wall_ms={"transform": 3}, num_workers=0),
    "sample": World(wall_ms={"sample": 7, "handover": 0.05}),
    "collate": World(wall_ms={"transform": 1, "collate": 6}),
    "transfer": World(wall_ms={"decode": 1}, transfer_s=0.005),
    "slow worker": World(wall_ms={"decode": 2.5}, slow_worker=5, num_workers=4),
    "tail": World(wall_ms={"decode": 0.1}, tail=(0.008, 1000), num_workers=0),
    "epoch start": World(wall_ms={"decode": 1}, num_batches=30, worker_start_s=0.4),
    "burst": World(wall_ms={"decode": 4}, burst=(0.1,) * 20 + (6,) * 4),
    "interference": World(wall_ms={"decode": 1}, interference=0.2),
    "needless workers": World(wall_ms={"sample": 0.05, "handover": 1.0}, step_s=0.004),
}


@pytest.mark.parametrize("cause", LIMITED)
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_wrong_is_named_first(cause, seed):
    found = LIMITED[cause].measured(seed=seed).conclusion
    assert (found.verdict, found.causes[0].cause) == ("limited", cause), found.sentence
    assert found.causes[0].remedy
    assert found.causes[0].evidence


@pytest.mark.parametrize("cause", LIMITED)
@pytest.mark.parametrize("left_out", [(), ("C",), ("C", "N", "L")], ids=["all rounds", "no C", "the loop alone"])
def test_no_cause_wins_more_than_the_loop_can_win(cause, left_out):
    """With rounds of the step alone, what they leave; without, what is waited for: in a short run they do not fit."""
    world = LIMITED[cause]
    found = world.measured_from([run for run in world.rounds(seed=1) if run.arm not in left_out])
    d, waits = found.decomposition, found.waiting.share.value
    most = waits / (1 - waits) if d is None else d.headroom.value
    for one in found.conclusion.causes:
        # Interference is not waited for, and the start of an epoch is counted apart from its steps.
        if one.gain is not None and one.cause not in {"needless workers", "epoch start"}:
            assert one.gain.value <= max(1.02 * most, most + 0.02), (one.cause, one.text)


def test_threads_beyond_the_cores_come_before_the_stage_that_computes():
    world = World(wall_ms={"decode": 4}, num_workers=8, cores=2, cpu_inflation=2.0)
    causes = [cause.cause for cause in world.measured(busy_threads=2.0).conclusion.causes]
    assert causes[:2] == ["oversubscription", "decode"]


def test_two_stages_of_like_size_are_both_named():
    causes = {cause.cause for cause in World(wall_ms={"read": 5, "decode": 6}).measured().conclusion.causes}
    assert causes == {"read", "decode"}


def test_a_slow_worker_and_a_slow_stage_are_both_named_if_one_does_not_explain_all():
    world = World(wall_ms={"decode": 20}, slow_worker=2, num_workers=4)
    assert [cause.cause for cause in world.measured().conclusion.causes] == ["slow worker", "decode"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "world",
    [
        World(wall_ms={"decode": 1, "collate": 0.1}),
        World(wall_ms={"decode": 0.02}, num_workers=0),
        World(wall_ms={"decode": 1}, noise=0.05),
        World(wall_ms={"decode": 1}, noise=0.3),
        World(wall_ms={"decode": 0.5}, num_batches=400, worker_start_s=0.1),
        World(wall_ms={"decode": 1}, burst=(0.9, 1.1)),
    ],
    ids=["plain", "serial", "noisy", "loud", "epochs", "uneven"],
)
def test_a_healthy_loop_is_never_called_limited(world, seed):
    assert world.measured(seed=seed).conclusion.verdict in {"healthy", "inconclusive"}


def test_a_healthy_loop_on_a_quiet_machine_is_called_so():
    found = World(wall_ms={"decode": 1, "collate": 0.1}).measured().conclusion
    assert (found.verdict, found.exit_status) == ("healthy", 0)
    assert found.sentence.startswith("Nothing to fix: work on data could win at most")


def test_what_is_open_says_what_would_settle_it():
    found = World(wall_ms={"decode": 1}, noise=0.4).measured().conclusion
    assert (found.verdict, found.exit_status) == ("inconclusive", 3)
    assert "--budget" in found.settling


def test_the_loader_alone_gets_its_rate_and_its_limit_and_no_verdict_on_a_need():
    found = World(wall_ms={"read": 1, "decode": 8}).measured(has_step=False).conclusion
    assert (found.verdict, found.exit_status, found.causes[0].cause) == ("supply", 0, "decode")
    assert "--step-ms" in found.settling


def test_workers_who_share_a_busy_machine_wait_now_and_then_which_is_no_fault():
    world = World(wall_ms={"decode": 1, "handover": 0.2}, step_s=0.02)  # 7 % of the time
    assert world.measured().conclusion.verdict == "limited"
    assert world.measured(noise="loud").conclusion.verdict != "limited"


def test_fewer_workers_are_not_advised_where_they_would_make_the_loop_slower():
    # Alone, none are faster; beside a step, the worker hides what loading takes.
    found = World(wall_ms={"sample": 1}, num_workers=1, cpu_inflation=1.5).measured()
    assert fewer_are_faster(found.plain, 1) is not None
    assert found.conclusion.verdict == "healthy"
    assert found.conclusion.causes == ()


def test_waits_that_the_step_times_deny_are_a_busy_machines():
    # Someone waits 40 % of the time, and the loop is no slower than its step alone: both waited for a core.
    world = World(wall_ms={"decode": 0.2, "handover": 1.6})
    runs = [run for run in world.rounds() if run.arm != "C"]
    runs += [dataclasses.replace(run, arm="C") for run in runs if run.arm == "I" and not run.is_control]
    measured = world.measured()
    found = decompose(runs, WARM)
    assert find_waiting(runs).share.interval.low > 0.3
    denied = dataclasses.replace(measured, runs=tuple(runs), decomposition=found, waiting=find_waiting(runs))
    assert judge(denied, []) == "limited"
    assert judge(dataclasses.replace(denied, preflight=machine(8, "loud")), []) == "inconclusive"
