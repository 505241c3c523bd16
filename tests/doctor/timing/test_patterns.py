"""Patterns of simulated pipelines, in which it is known who waits for what."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.timing import patterns
from headrace.doctor.timing.timed import BatchMade, EpochStart, Steps

seconds = st.floats(0.001, 2.0, allow_nan=False)


@dataclasses.dataclass
class Run:
    steps: Steps
    made: list[BatchMade]


def simulate(make_s, own_s, *, num_workers, prefetch=2, per_epoch=None, slowest_s=None):
    """Workers take batches in turns and hand them over in order; each has so many ahead. Everything starts anew with an epoch."""
    num = len(make_s)
    per_epoch = per_epoch or num
    asked, got, made, epochs = [], [], [], []
    clock = 0.0
    for start in range(0, num, per_epoch):
        began_epoch, free = clock, [clock] * num_workers
        for place in range(start, min(start + per_epoch, num)):
            worker = (place - start) % num_workers
            ahead = place - num_workers * prefetch
            allowed = got[ahead] if ahead >= start else began_epoch
            began = max(free[worker], allowed)
            free[worker] = began + make_s[place]
            slowest = make_s[place] / 2 if slowest_s is None else slowest_s[place]
            made.append(
                BatchMade(
                    batch=place, worker=worker, began_s=began, fetched_s=free[worker], made_s=free[worker],
                    slowest_sample_s=slowest,
                )
            )  # fmt: skip
            asked.append(clock)
            got.append(max(clock, free[worker]))
            epochs.append(start // per_epoch)
            clock = got[-1] + own_s[place]
    steps = Steps(asked_s=tuple(asked), got_s=tuple(got), end_s=clock, epochs=tuple(epochs), num_samples=(1,) * num)
    return Run(steps, made)


runs = st.integers(1, 40).flatmap(
    lambda num: st.builds(
        simulate,
        st.lists(seconds, min_size=num, max_size=num),
        st.lists(seconds, min_size=num, max_size=num),
        num_workers=st.integers(1, 5),
        prefetch=st.integers(1, 3),
        per_epoch=st.integers(1, 40),
    )
)


def blocked_by_grid(run, points=4000):
    """The same by looking at moments."""
    waited = blocked = 0.0
    made = {one.batch: one.made_s for one in run.made}
    for place, (asked, got) in enumerate(zip(run.steps.asked_s, run.steps.got_s, strict=True)):
        if place == 0 or run.steps.epochs[place] != run.steps.epochs[place - 1]:
            continue
        waited += got - asked
        epoch = run.steps.epochs[place]
        later = [made[other] for other in made if other > place and run.steps.epochs[other] == epoch]
        moments = asked + (np.arange(points) + 0.5) / points * (got - asked)
        is_blocked = (moments < made[place]) & (moments >= min(later, default=np.inf))
        blocked += is_blocked.mean() * (got - asked)
    return blocked / waited if waited else 0.0


@given(runs)
def test_head_of_line_is_what_looking_at_every_moment_finds(run):
    assert patterns.head_of_line_share(run.steps, run.made) == pytest.approx(blocked_by_grid(run), abs=2e-3)


@given(runs)
def test_shares_are_shares(run):
    waits = run.steps.waits_s
    assert 0 <= patterns.head_of_line_share(run.steps, run.made) <= 1 + 1e-9
    assert 0 <= patterns.tail_share(waits) <= 1 + 1e-9
    found = patterns.bursts(run.steps)
    assert found is None or (0 <= found.gap_share <= 1 and found.variation >= 0)
    slow = patterns.slow_samples(run.made)
    assert slow is None or 0 < slow.share <= 1
    assert patterns.median_ready_ahead_s(run.steps, run.made) >= 0


def test_one_slow_batch_holds_up_the_others():
    make = [0.01] * 40
    make[20] = 5.0
    run = simulate(make, [0.001] * 40, num_workers=4)
    assert patterns.head_of_line_share(run.steps, run.made) > 0.9


def test_one_worker_is_never_held_up_by_the_order():
    run = simulate([0.5] * 40, [0.1] * 40, num_workers=1)
    assert patterns.head_of_line_share(run.steps, run.made) == 0


def test_without_notes_nothing_is_said():
    run = simulate([0.5] * 4, [0.1] * 4, num_workers=1)
    assert patterns.head_of_line_share(run.steps, ()) is None
    assert patterns.median_ready_ahead_s(run.steps, ()) is None
    assert patterns.slow_samples(()) is None
    assert patterns.slow_worker(()) is None


def test_batches_wait_for_a_slow_loop_and_not_for_a_fast_one():
    slow = simulate([0.01] * 40, [1.0] * 40, num_workers=2)
    assert patterns.median_ready_ahead_s(slow.steps, slow.made) > 1.0
    fast = simulate([1.0] * 40, [0.01] * 40, num_workers=2)
    assert patterns.median_ready_ahead_s(fast.steps, fast.made) < 0.02


@given(st.integers(2, 6), st.integers(0, 5), st.integers(1, 3), st.integers(0, 2**32))
def test_the_slow_worker_is_found_over_epochs_of_any_length(num_workers, slow, num_epochs, seed):
    slow %= num_workers
    per_epoch = 20 * num_workers + seed % num_workers
    draws = np.random.default_rng(seed)
    make = [
        float(draws.uniform(0.9, 1.1)) * (2 if place % per_epoch % num_workers == slow else 1)
        for place in range(per_epoch * num_epochs)
    ]
    run = simulate(make, [0.1] * len(make), num_workers=num_workers, per_epoch=per_epoch)
    found = patterns.slow_worker(run.made, run.steps.epochs)
    assert found.worker == slow
    assert found.median_s / found.others_s == pytest.approx(2, rel=0.1)
    medians = patterns.worker_medians_s(run.made)
    assert max(medians, key=medians.get) == slow
    assert set(medians) == set(range(num_workers))


@given(st.integers(2, 6), st.integers(0, 2**32))
def test_workers_of_one_speed_are_no_slow_worker(num_workers, seed):
    make = np.random.default_rng(seed).uniform(0.9, 1.1, 30 * num_workers).tolist()
    run = simulate(make, [0.1] * len(make), num_workers=num_workers)
    assert patterns.slow_worker(run.made) is None


def test_workers_that_take_no_turns_are_not_tested():
    run = simulate([1.0] * 60, [0.1] * 60, num_workers=2)
    mixed = [dataclasses.replace(one, worker=one.batch * one.batch % 3 % 2) for one in run.made]
    assert patterns.worker_period(mixed) is None


def test_few_slow_samples():
    slowest = [0.01] * 100
    slowest[7] = slowest[70] = 3.0
    make = [0.04 + one for one in slowest]
    run = simulate(make, [0.01] * 100, num_workers=2, slowest_s=slowest)
    found = patterns.slow_samples(run.made)
    assert (found.num_batches, found.usual_s, found.slowest_s) == (2, 0.01, 3.0)
    assert found.share == pytest.approx(6.0 / sum(make), rel=0.01)
    assert patterns.slow_samples(simulate([1.0] * 50, [1.0] * 50, num_workers=2).made) is None
    assert patterns.tail_share(run.steps.waits_s, worst=0.02) > 0.5


@given(st.lists(seconds, min_size=1, max_size=300))
def test_the_tail_is_at_least_its_part_and_all_of_one_wait(waits):
    share = patterns.tail_share(waits)
    assert share >= max(1, round(0.01 * len(waits))) / len(waits) - 1e-9
    assert patterns.tail_share([*[0.0] * 99, 1.0]) == 1
    assert patterns.tail_share([0.0]) == 0


def test_bursts():
    even = patterns.bursts(simulate([0.01] * 50, [0.5] * 50, num_workers=2).steps)
    assert (even.num_gaps, even.gap_share) == (0, 0)
    assert even.variation == pytest.approx(0, abs=1e-9)
    own = [0.1] * 50
    own[10] = own[30] = 5.0
    uneven = patterns.bursts(simulate([0.01] * 50, own, num_workers=2).steps)
    assert uneven.num_gaps == 2
    assert uneven.gap_share == pytest.approx(10 / (10 + 47 * 0.1))
    assert uneven.variation > 1
    assert patterns.bursts(simulate([0.01] * 3, own[:3], num_workers=2, per_epoch=1).steps) is None


def test_starts_of_epochs():
    starts = [EpochStart(epoch=epoch, make_s=1.0, first_batch_s=0.5) for epoch in range(3)]
    assert patterns.start_share(starts, total_s=30) == pytest.approx(0.1)
    assert patterns.start_share(starts[:1], total_s=30) == 0
    assert patterns.start_share(starts, total_s=0) == 0


def test_threads_and_cores():
    assert patterns.runnable_per_core(num_workers=4, threads_per_worker=2, loop_threads=8, num_cores=8) == 2
    assert patterns.cores_busy(cpu_s=6, wall_s=2) == 3
    assert patterns.cores_busy(cpu_s=6, wall_s=0) == 0
