"""How one side is measured, inside the fresh process that was started for it. Standard library and numpy only."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from benchmarks.regime import Regime, Side, Work

from benchmarks import proc

clock = time.monotonic

WARM_BATCHES = 8
MIN_BATCHES = 8
"""Batches before and within the measured window, however slow they are."""

SETTLE_S = 8.0
"""How long a loader that tunes itself may take before it is measured as it is."""

CACHED_STEPS = 10
"""Training steps on a cached batch before, and after, those that are fed."""


def throughput(side: Side, work: Work, regime: Regime, seconds: float) -> dict[str, Any]:
    """Samples per second once the loader is warm and settled, over epoch borders as they come.

    The window begins and ends when a batch arrives; with `is_whole_epochs` it is whole epochs after the first one.
    Otherwise the value is the slope of the line through (time, samples so far): workers that started together deliver in
    bursts, and a mean would depend on where within a burst the window begins.
    """
    begin_s = clock()
    loader = side.open(work)
    arrivals = _arrivals(loader)
    first = next(arrivals)
    first_batch_s = clock() - begin_s

    warm = _Warm(side, loader, clock(), seconds)
    window, cpu_s = None, 0.0
    gaps: list[float] = []
    times: list[float] = []
    counts: list[int] = []
    for now_s, size, gap_s in arrivals:
        if gap_s is not None:
            gaps.append(gap_s)
        is_border = gap_s is not None or not regime.is_whole_epochs
        if window is None:
            if warm.is_over(now_s) and is_border:
                window, cpu_s = now_s, _cpu_s()
            continue
        times.append(now_s)
        counts.append(size)
        if is_border and now_s - window >= seconds and len(times) >= MIN_BATCHES:
            break
    elapsed_s, num_samples = times[-1] - window, sum(counts)
    cpu_s = _cpu_s() - cpu_s
    found = {
        "value": num_samples / elapsed_s if regime.is_whole_epochs else slope(window, times, counts),
        "cpu_us_per_sample": 1e6 * cpu_s / num_samples,
        "first_batch_s": first_batch_s,
        "epoch_gap_s": statistics.median(gaps) if gaps else None,
        "num_samples": num_samples,
        "window_s": elapsed_s,
        "window_after_s": window - begin_s,
        "settled_after_s": warm.settled_s,
        "first_batch_samples": first[1],
        **(side.notes(loader) if side.notes else {}),
    }
    arrivals.close()
    return found


def slope(window: float, times: list[float], counts: list[int]) -> float:
    """Returns samples per second: of the straight line nearest to all points (time, samples so far)."""
    when = np.array([window, *times])
    done = np.cumsum([0, *counts])
    when -= when.mean()
    return float(when @ (done - done.mean()) / (when @ when))


def start(side: Side, work: Work, regime: Regime, seconds: float) -> dict[str, Any]:  # noqa: ARG001 one signature
    """Seconds from making the loader to its first batch; then the gap between the first and the second epoch."""
    side.open(work)  # makes the list, which the regime keeps: it is the user's, and no loader's work
    begin_s = clock()
    loader = side.open(work)
    iterator = iter(loader)
    next(iterator)
    first_batch_s = clock() - begin_s
    if not regime.is_whole_epochs:
        return {"value": first_batch_s, "first_batch_s": first_batch_s}
    for _ in iterator:
        last_s = clock()
    iterator = iter(loader)
    next(iterator)
    return {"value": first_batch_s, "first_batch_s": first_batch_s, "epoch_gap_s": clock() - last_s}


def three_epochs(side: Side, work: Work, regime: Regime, seconds: float) -> dict[str, Any]:  # noqa: ARG001
    """Runs three epochs; the harness looks at the memory from outside and fills in the value."""
    loader = side.open(work)
    ends = []
    for _ in range(3):
        for _ in loader:
            pass
        ends.append(clock())
    return {"value": None, "epoch_ends": ends}


def trainer(side: Side, work: Work, regime: Regime, seconds: float) -> dict[str, Any]:  # noqa: ARG001
    """Milliseconds that a training step of fixed, one-threaded work waits for its batch, and how much slower the step is."""
    step = _Step(work.meta()["step_repeats"])
    cached = np.zeros((work.size["batch_size"], 224, 224, 3), np.uint8)
    before = [step(cached) for _ in range(CACHED_STEPS)]
    waits, steps = [], []
    loader = side.open(work)
    arrivals = _arrivals(loader, with_batch=True)
    warm, window = _Warm(side, loader, clock(), seconds), None
    asked_s = clock()
    for now_s, batch in arrivals:
        if window is not None:
            waits.append(now_s - asked_s)
        lasted_s = step(batch)
        if window is not None:
            steps.append(lasted_s)
        elif warm.is_over(now_s):
            window = now_s
        asked_s = clock()
        if window is not None and asked_s - window > seconds and len(steps) >= MIN_BATCHES:
            break
    found = side.notes(loader) if side.notes else {}
    arrivals.close()
    after = [step(cached) for _ in range(CACHED_STEPS)]
    return {
        "value": 1e3 * statistics.mean(waits),
        "wait_median_ms": 1e3 * statistics.median(waits),
        "step_efficiency": statistics.median(before + after) / statistics.median(steps),
        "step_ms": 1e3 * statistics.median(steps),
        "num_steps": len(steps),
        "settled_after_s": warm.settled_s,
        **found,
    }


def resume(side: Side, work: Work, regime: Regime, seconds: float) -> dict[str, Any]:  # noqa: ARG001
    """Milliseconds by which the first batch of a run resumed at half comes later than that of a fresh run."""
    trial = side.open(work)
    begin_s = clock()
    trial.fresh()
    fresh_s = clock() - begin_s
    begin_s = clock()
    # A side that first has to get to the middle returns what resuming alone took.
    resumed_s = trial.resumed() or clock() - begin_s
    repeats = 200
    begin_s = clock()
    for _ in range(repeats):
        trial.state()
    return {
        "value": 1e3 * resumed_s,
        "fresh_ms": 1e3 * fresh_s,
        "later_ms": 1e3 * (resumed_s - fresh_s),
        "state_us": 1e6 * (clock() - begin_s) / repeats,
    }


class _Warm:
    """Says when a loader has come to its steady state: some batches, some time, and settled if it tunes itself."""

    def __init__(self, side: Side, loader: Any, begin_s: float, seconds: float) -> None:
        self.side, self.loader, self.begin_s = side, loader, begin_s
        self.least_s = max(seconds / 4, side.warm_s)
        self.settled_s: float | None = None
        """Seconds after the first batch; None where nothing tunes itself, or it had not settled when we gave up."""
        self.num_batches, self.since_s = 0, begin_s if side.is_settled is None else None

    def is_over(self, now_s: float) -> bool:
        """Called at each arrival until it returns True."""
        if self.since_s is None:
            if self.side.is_settled(self.loader):
                self.since_s = now_s
                self.settled_s = now_s - self.begin_s
            elif now_s - self.begin_s >= SETTLE_S:
                self.since_s = now_s
            return False
        self.num_batches += 1
        return self.num_batches >= WARM_BATCHES and now_s - self.since_s >= self.least_s


class _Step:
    """A training step of fixed work in one thread: reads the batch, multiplies matrices."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.a = np.random.default_rng(0).standard_normal((256, 256), dtype=np.float32)
        self.out = np.empty_like(self.a)

    def __call__(self, batch: Any) -> float:
        begin_s = clock()
        images = batch[0] if isinstance(batch, tuple | list) else batch
        np.asarray(images).sum()
        for _ in range(self.repeats):
            np.matmul(self.a, self.a, out=self.out)
        return clock() - begin_s


def step_repeats(target_s: float) -> int:
    """Returns how many repetitions make a training step of about `target_s` here."""
    trial = _Step(200)
    cached = np.zeros((1, 1), np.uint8)
    return max(1, round(200 * target_s / min(trial(cached) for _ in range(5))))


def _arrivals(loader: Any, *, with_batch: bool = False) -> Iterator[tuple[Any, ...]]:
    """Yields (when, samples in it, seconds since the last batch of the previous epoch or None) per batch, without end."""
    last_s = None
    while True:
        is_first = True
        for batch in loader:
            now_s = clock()
            if with_batch:
                yield now_s, batch
            else:
                yield now_s, num_rows(batch), now_s - last_s if is_first and last_s is not None else None
            is_first = False
            last_s = now_s
        if is_first:
            raise RuntimeError("an epoch without a batch")


def num_rows(batch: Any) -> int:
    """Number of samples in a batch: the length of its first field."""
    while isinstance(batch, dict | tuple | list):
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    return len(batch)


def _cpu_s() -> float:
    """CPU seconds of this process, its ended children and its living descendants."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime + proc.cpu_of_descendants_s()


def digest(loader: Any, *, with_contents: bool, labels_of: Any = None) -> dict[str, Any]:
    """Returns, of one epoch, the number of samples and sums over what they hold that do not depend on their order.

    `labels` is about the last field, or `labels_of(loader, batch)`; `contents` about all. Numbers count by value: int32 and int64, tensor and array
    are the same.
    """
    labels, contents, num_samples = 0, 0, 0
    for batch in loader:
        fields = [_rows(field) for field in _fields(batch)]
        num_samples += len(fields[-1])
        labels += _sum([_rows(labels_of(loader, batch))] if labels_of else fields[-1:])
        contents += _sum(fields) if with_contents else 0
    return {
        "num_samples": num_samples,
        "labels": f"{labels % 2**64:016x}",
        "contents": f"{contents % 2**64:016x}" if with_contents else None,
    }


def _sum(fields: list[np.ndarray]) -> int:
    per_sample = np.zeros(len(fields[0]), np.uint64)
    for number, rows in enumerate(fields):
        weights = np.random.default_rng(number).integers(1, 2**63, rows.shape[1], dtype=np.uint64) | np.uint64(1)
        mixed = (rows * weights).sum(axis=1, dtype=np.uint64)
        # Mixed before the fields are added, so that fields cannot change places between samples.
        mixed ^= mixed >> np.uint64(31)
        per_sample = (per_sample + mixed) * np.uint64(0x9E3779B97F4A7C15)
        per_sample ^= per_sample >> np.uint64(29)
    return int(per_sample.sum(dtype=np.uint64))


def _fields(batch: Any) -> list[Any]:
    if isinstance(batch, dict):
        return [leaf for name in sorted(batch) for leaf in _fields(batch[name])]
    return [leaf for part in batch for leaf in _fields(part)] if isinstance(batch, tuple | list) else [batch]


def _rows(field: Any) -> np.ndarray:
    values = np.asarray(field)
    values = values.astype(np.int64) if values.dtype.kind in "iub" else values.astype(np.float64)
    return np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint64)
