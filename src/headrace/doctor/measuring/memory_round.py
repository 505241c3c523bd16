"""A round in which memory is followed, and which threads compute: apart from the rounds whose speed counts."""

from __future__ import annotations

import dataclasses
import statistics
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import psutil

from headrace.doctor.lab.bench import Bench
from headrace.doctor.measuring.model import MemoryUse
from headrace.doctor.meters.growth import judge_growth
from headrace.doctor.meters.memory import MemorySampler, MemorySeries
from headrace.doctor.subject import Subject
from headrace.doctor.timing.runs import TimedRun
from headrace.doctor.timing.timed import Timed

__all__ = ["BusyThreads", "MemoryRound", "memory_use"]

PERIOD_S = 0.2
LEAST_S = 0.05
"""Processor seconds below which a worker has hardly worked."""


@dataclasses.dataclass(frozen=True, slots=True)
class BusyThreads:
    """Threads that compute at a time in one worker; None: there are no workers, or they hardly worked."""

    per_worker: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRound:
    """The experiment; yields a Timed, a MemorySeries and BusyThreads."""

    name: ClassVar[str] = "memory round"
    starts_processes: ClassVar[bool] = True

    timed: TimedRun

    def run(self, subject: Subject, bench: Bench) -> Iterator[Any]:
        """Runs it under the sampler, which follows this process and all below it."""
        is_over, seen = threading.Event(), dict[tuple[int, int], float]()
        watch = threading.Thread(target=_watch, args=(is_over, seen), daemon=True, name="headrace-threads")
        try:
            with MemorySampler(period_s=PERIOD_S) as sampler:
                watch.start()
                yield from self.timed.run(subject, bench)
        finally:
            is_over.set()
            watch.join()
        yield sampler.series
        yield BusyThreads(_busy(seen))


def _watch(is_over: threading.Event, seen: dict[tuple[int, int], float]) -> None:
    """Notes the processor time of each thread of each process below this one, until it is over."""
    here = psutil.Process()
    while not is_over.wait(PERIOD_S):
        for process in here.children(recursive=True):
            try:
                for thread in process.threads():
                    seen[process.pid, thread.id] = thread.user_time + thread.system_time
            except psutil.Error:  # it has ended meanwhile
                continue


def _busy(seen: dict[tuple[int, int], float]) -> float | None:
    """All threads' time over that of the busiest, in the median over the processes."""
    by_process: dict[int, list[float]] = {}
    for (pid, _), seconds in seen.items():
        by_process.setdefault(pid, []).append(seconds)
    numbers = [sum(own) / max(own) for own in by_process.values() if max(own) >= LEAST_S]
    return statistics.median(numbers) if numbers else None


def memory_use(timed: Timed, series: MemorySeries) -> MemoryUse:
    """What the round says of memory."""
    num_batches = max(1, len(timed.steps.got_s))
    batch_bytes = timed.amounts.num_bytes // num_batches
    growth = judge_growth(series.at_batches([(at, number) for number, at in enumerate(timed.steps.got_s, 1)]))
    return MemoryUse(
        series=series,
        growth=None if growth.bytes_per_1000 is None else growth,
        batch_bytes=batch_bytes,
        ahead_bytes=timed.in_flight * batch_bytes,
    )
