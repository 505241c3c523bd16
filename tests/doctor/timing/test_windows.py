"""The steady part of a run, against a loader that is simulated event by event."""

import dataclasses
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.doctor.timing.crew import Crew
from headrace.doctor.timing.timed import Steps
from headrace.doctor.timing.windows import Epoch, change_point, find_window, lead_of

SAMPLES = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Simulated:
    """A loader with workers that deliver in turn, as torch's do, and a step that takes a fixed time."""

    num_workers: int
    prefetch: int
    batch_s: float
    step_s: float
    start_s: float = 0.0
    """Of a worker."""
    noise: float = 0.0
    is_kept: bool = False
    warm_up: int = 0
    """Steps at the very beginning that take three times as long."""

    @property
    def crew(self):
        return Crew(
            num_workers=self.num_workers,
            in_flight=self.num_workers * self.prefetch,
            is_kept=self.is_kept,
            first_steps=1,
        )

    def true_rate(self):
        """Samples per second of an endless epoch, long after its start."""
        steps, _ = self.run([20_000])
        bounds = [*steps.asked_s, steps.end_s]
        return SAMPLES * 15_000 / (bounds[-1] - bounds[5_000])

    def run(self, epochs, left=0):
        """Steps of epochs of so many batches; the last one is left with `left` batches to go."""
        rng = random.Random(0)
        now, num = 0.0, 0
        asked, got, of, found = [], [], [], []
        for epoch, size in enumerate(epochs):
            total = size + (left if epoch == len(epochs) - 1 else 0)
            free = [now + (self.start_s if epoch == 0 or not self.is_kept else 0.0)] * max(1, self.num_workers)
            ready = {}
            ordered = 0

            def order(at, free=free, ready=ready, total=total):
                nonlocal ordered
                if ordered < total:
                    worker = ordered % len(free)
                    took = self.batch_s * math.exp(rng.gauss(0, self.noise))
                    free[worker] = ready[ordered] = max(at, free[worker]) + took
                    ordered += 1

            in_flight = self.num_workers * self.prefetch
            for _ in range(in_flight):
                order(now)
            for batch in range(size):
                asked.append(now)
                if not in_flight:
                    order(now)
                now = max(now, ready[batch])
                if in_flight:
                    order(now)
                got.append(now)
                of.append(epoch)
                now += self.step_s * (3 if num < self.warm_up else 1)
                num += 1
            found.append(Epoch(first=num - size, last=num, num_left=total - size))
        return Steps(
            asked_s=tuple(asked), got_s=tuple(got), end_s=now, epochs=tuple(of), num_samples=(SAMPLES,) * num
        ), found


LOADERS = [
    Simulated(num_workers=4, prefetch=2, batch_s=0.04, step_s=0.001, start_s=0.5),
    Simulated(num_workers=4, prefetch=8, batch_s=0.04, step_s=0.009, start_s=2.0),
    Simulated(num_workers=8, prefetch=4, batch_s=0.1, step_s=0.03, start_s=1.0),
    Simulated(num_workers=3, prefetch=2, batch_s=0.03, step_s=0.0, start_s=0.2, is_kept=True),
    Simulated(num_workers=0, prefetch=0, batch_s=0.01, step_s=0.005),
]


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: f"{loader.num_workers}x{loader.prefetch}")
@pytest.mark.parametrize("epochs", [[150], [120, 120, 120], [200, 37]], ids=str)
@pytest.mark.parametrize("left", [0, 1, 10_000], ids=lambda left: f"left {left}")
def test_the_windowed_rate_is_the_steady_rate(loader, epochs, left):
    steps, found = loader.run(epochs, left=left)
    window, why = find_window(steps, found, loader.crew)
    assert window is not None, why
    assert window.rate_per_s == pytest.approx(loader.true_rate(), rel=0.02)


def test_a_plain_mean_is_not_the_steady_rate():
    """Else the window would be for nothing."""
    loader = LOADERS[1]
    steps, _ = loader.run([80, 80, 80])
    plain = SAMPLES * len(steps.asked_s) / (steps.end_s - steps.asked_s[0])
    assert abs(plain / loader.true_rate() - 1) > 0.2
    # Nor is it one without the first batch of each epoch alone: the queue was full when the first one came.
    loader = Simulated(num_workers=4, prefetch=16, batch_s=0.4, step_s=0.001, start_s=0.0)
    steps, found = loader.run([100], left=1000)
    naive = SAMPLES * 99 / (steps.end_s - steps.asked_s[1])
    window, _ = find_window(steps, found, loader.crew)
    assert abs(naive / loader.true_rate() - 1) > 0.02
    assert window.rate_per_s == pytest.approx(loader.true_rate(), rel=0.02)


@settings(max_examples=80, deadline=None)
@given(
    num_workers=st.integers(0, 8),
    prefetch=st.integers(1, 4),
    ratio=st.floats(0.05, 20),
    start=st.floats(0, 50),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=4),
    left=st.sampled_from([0, 3, 500]),
    is_kept=st.booleans(),
)
def test_laws_of_windows(num_workers, prefetch, ratio, start, sizes, left, is_kept):
    loader = Simulated(
        num_workers=num_workers,
        prefetch=prefetch,
        batch_s=0.01 * max(1, num_workers),
        step_s=0.01 * ratio,
        start_s=0.01 * start,
        noise=0.2,
        is_kept=is_kept,
    )
    steps, found = loader.run(sizes, left=left)
    window, why = find_window(steps, found, loader.crew)
    if window is None:
        assert "too few" in why
        return
    places = list(window.places)
    assert len(places) == window.num_batches >= 1
    assert window.num_samples == SAMPLES * len(places)
    assert window.first == places[0]
    assert window.last == places[-1] + 1
    assert 0 <= window.first < window.last <= len(steps.asked_s)
    assert places == sorted(set(places))
    bounds = [*steps.asked_s, steps.end_s]
    assert window.seconds == pytest.approx(sum(bounds[place + 1] - bounds[place] for place in places))
    if "whole epoch" not in why:
        firsts = {epoch.first for epoch in found}
        assert not firsts & set(places), "the start of an epoch is never steady"
        ends = [epoch for epoch in found if epoch.is_whole]
        for epoch in ends:
            tail = set(range(epoch.last - loader.crew.in_flight, epoch.last))
            assert not tail & set(places), "producers had nothing left to do"


def test_longer_runs_have_longer_windows():
    loader = LOADERS[0]
    lengths = []
    for size in (40, 60, 100, 300):
        steps, found = loader.run([size], left=100)
        lengths.append(find_window(steps, found, loader.crew)[0].num_batches)
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("sizes", [[3], [3, 3, 3]])
def test_tiny_data_sets_have_the_rate_of_whole_epochs(sizes):
    loader = Simulated(num_workers=2, prefetch=2, batch_s=0.1, step_s=0.1, start_s=1.0)
    steps, found = loader.run(sizes)
    window, why = find_window(steps, found, loader.crew)
    counted = len(sizes[1:]) or 1
    assert "3 batches is too short" in why
    assert "starts included" in why
    assert window.num_batches == 3 * counted
    assert window.seconds == pytest.approx((1.0 + 0.1 + 3 * 0.1) * counted)


def test_nothing_is_claimed_of_too_little():
    loader = LOADERS[0]
    steps, found = loader.run([4], left=50)
    assert find_window(steps, found, loader.crew) == (
        None,
        "too few batches for a steady part: 4 in all, and the first 16 belong to the start",
    )
    empty = Steps(asked_s=(), got_s=(), end_s=0.0, epochs=(), num_samples=())
    assert find_window(empty, [], loader.crew) == (None, "no batch was delivered")


def test_a_short_window_is_told():
    loader = Simulated(num_workers=4, prefetch=8, batch_s=0.04, step_s=0.001)
    steps, found = loader.run([100], left=100)
    _, why = find_window(steps, found, loader.crew)
    assert "short" in why
    assert "32 can be in flight" in why


def test_warm_up_is_left_out():
    loader = Simulated(num_workers=0, prefetch=0, batch_s=0.001, step_s=0.01, warm_up=60)
    steps, found = loader.run([400], left=10)
    window, _ = find_window(steps, found, loader.crew)
    assert 55 <= window.first <= 70
    assert window.rate_per_s == pytest.approx(SAMPLES / 0.011, rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_tail_is_no_change_of_speed(seed):
    rng = np.random.default_rng(seed)
    steps_s = np.where(rng.random(400) < 0.03, 0.5, 0.01)
    assert change_point(steps_s, block=5) == 0


def test_a_speed_that_comes_back_is_no_warm_up():
    """Shards of large pictures, again and again."""
    rng = np.random.default_rng(0)
    steps_s = np.where(np.arange(400) // 100 % 2, 0.01, 0.03) * rng.lognormal(0, 0.02, 400)
    assert change_point(steps_s, block=5) == 0


def test_noise_is_seldom_taken_for_a_change():
    rng = np.random.default_rng(0)
    found = sum(change_point(rng.lognormal(0, 0.3, 300), block=5) > 0 for _ in range(300))
    assert found <= 6  # of 300: 1 %, and some chance


@given(cut=st.integers(10, 45), factor=st.sampled_from([0.5, 0.9, 1.1, 3.0]))
@settings(max_examples=30, deadline=None)
def test_a_change_is_found_where_it_is(cut, factor):
    rng = np.random.default_rng(cut)
    steps_s = 0.01 * rng.lognormal(0, 0.02, 500)
    steps_s[: 5 * cut] *= factor
    assert abs(change_point(steps_s, block=5) - 5 * cut) <= 10


def test_workers_that_run_on_have_nothing_to_fill_again():
    crew = Crew(num_workers=4, in_flight=8, is_kept=True, runs_on=True)
    assert (lead_of(crew, 0), lead_of(crew, 1)) == (16, 1)
    assert lead_of(dataclasses.replace(crew, runs_on=False), 1) == 8
    assert lead_of(dataclasses.replace(crew, runs_on=False, is_kept=False), 1) == 16
