"""Patterns of simulated pipelines, in which it is known who waits for what."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.timing import patterns
from headrace.doctor.timing.timed import BatchMade, Steps

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


@given(runs, st.sets(st.integers(0, 39)))
def test_only_the_waiting_of_some_steps_counts(run, places):
    """The oracle goes from step to step, and looks at each later batch of its epoch."""
    made = {one.batch: one.made_s for one in run.made}
    steps, waited, blocked = run.steps, 0.0, 0.0
    for place in sorted(places & set(range(1, len(steps.got_s)))):
        epochs = steps.epochs
        if epochs[place] != epochs[place - 1]:
            continue
        later = [made[after] for after in made if after > place and epochs[after] == epochs[place]]
        asked, got = steps.asked_s[place], steps.got_s[place]
        waited += got - asked
        blocked += max(0.0, min(got, made[place]) - max(asked, min(later, default=np.inf)))
    found = patterns.head_of_line_share(steps, run.made, places)
    assert found == pytest.approx(blocked / waited if waited else 0.0)


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


def test_few_slow_samples_hold_most_of_the_waiting():
    slowest = [0.01] * 100
    slowest[7] = slowest[70] = 3.0
    run = simulate([0.04 + one for one in slowest], [0.01] * 100, num_workers=2, slowest_s=slowest)
    assert patterns.tail_share(run.steps.waits_s, worst=0.02) > 0.5


@given(st.lists(seconds, min_size=1, max_size=300))
def test_the_tail_is_at_least_its_part_and_all_of_one_wait(waits):
    share = patterns.tail_share(waits)
    assert share >= max(1, round(0.01 * len(waits))) / len(waits) - 1e-9
    assert patterns.tail_share([*[0.0] * 99, 1.0]) == 1
    assert patterns.tail_share([0.0]) == 0
