"""Walks through a torch loader in one process, then with its own workers: bytes, tensors and seconds per batch.

No consumer takes part, so nothing here says whether a training loop waits; it says what workers cost and bring.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import psutil

from headrace.contract.view import as_array, flatten
from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import Pace
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject
from headrace.doctor.subject.rebuild import DEFAULT_PREFETCH, rebuild
from headrace.doctor.subject.walking import end_pass
from headrace.machine import process_awake_s

__all__ = ["STEP", "WalkTwice"]

MOST_BATCHES = 60
FEWEST_BATCHES = 8
"""Fewer intervals than this say nothing of a pace."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WalkTwice:
    """The experiment; yields one Pace."""

    name: ClassVar[str] = "pace without and with workers"
    starts_processes: ClassVar[bool] = True

    limit_s: float
    """Seconds for each of the two walks, the first batch not counted."""
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[Pace]:
        """Walks; workers end before the result is told."""
        if subject.loader is None:
            return  # another library's loader, which cannot be made again with other workers
        bench.reseed(self.seed, "pace")
        sizes: list[tuple[int, int]] = []
        single = rebuild(subject.loader, num_workers=0)
        before = process_awake_s(os.getpid())
        alone = self._walk(iter(single), bench, skip=1, sizes=sizes)
        single_share = (process_awake_s(os.getpid()) - before) / alone.wall_s if alone.wall_s else None
        num_workers = subject.num_workers
        prefetch = getattr(subject.loader, "prefetch_factor", None) or (DEFAULT_PREFETCH if num_workers else 0)
        worked, worker_share = _Walked(), None
        if num_workers:
            started = time.perf_counter()
            walk = iter(rebuild(subject.loader))
            wanted = _children_wanted()
            try:
                worked = self._walk(walk, bench, skip=num_workers * prefetch, sizes=[], started=started)
                worker_share = _largest_share(wanted, _children_wanted(), worked.wall_s)
            finally:
                end_pass(walk)
        middle = sorted(sizes)[len(sizes) // 2] if sizes else (0, 0)
        yield Pace(
            num_batches=subject.num_batches,
            num_workers=num_workers,
            prefetch_factor=prefetch,
            batch_bytes=middle[0],
            tensors_per_batch=middle[1],
            single_s=tuple(alone.intervals_s),
            single_cpu_share=single_share,
            single_cpu_s=statistics.median(alone.cpu_s) if alone.cpu_s else None,
            worker_s=tuple(worked.intervals_s),
            worker_first_s=worked.first_s,
            worker_cpu_share=worker_share,
            handover_cpu_s=statistics.median(worked.cpu_s) if worked.cpu_s else None,
        )

    def _walk(
        self,
        walk: Iterator[Any],
        bench: Bench,
        *,
        skip: int,
        sizes: list[tuple[int, int]],
        started: float | None = None,
    ) -> _Walked:
        begun = time.perf_counter() if started is None else started
        walked, last, deadline = _Walked(), begun, float("inf")
        for number in range(skip + MOST_BATCHES):
            with bench.holding(None, None, stage="batch"):
                bench.stop_listening()
                cpu_s = time.thread_time()
                try:
                    batch = next(walk)
                except StopIteration:
                    break
                except Exception:  # that the loader fails is told by the experiments that look for it
                    break
            now = time.perf_counter()
            if walked.first_s is None:
                walked.first_s = now - begun
                deadline = now + self.limit_s
            elif number >= skip:
                walked.intervals_s.append(now - last)
                walked.cpu_s.append(time.thread_time() - cpu_s)
            if len(sizes) < FEWEST_BATCHES:
                sizes.append(_size_of(batch))
            last = time.perf_counter()
            if last > deadline:
                break
        walked.wall_s = last - begun
        return walked


@dataclasses.dataclass(slots=True)
class _Walked:
    """One walk; the batches that were made ahead are skipped in both lists."""

    intervals_s: list[float] = dataclasses.field(default_factory=list)
    """Seconds between batches."""
    cpu_s: list[float] = dataclasses.field(default_factory=list)
    """Processor seconds of this thread while it asked for each of them."""
    first_s: float | None = None
    """Seconds to the first batch; None: there was none."""
    wall_s: float = 0.0
    """Seconds in all."""


def _size_of(batch: Any) -> tuple[int, int]:
    """(bytes, number) of the tensors and arrays of a batch."""
    arrays = [array for _, value in flatten(batch) if (array := as_array(value)) is not None]
    return sum(array.nbytes for array in arrays), len(arrays)


def _children_wanted() -> dict[int, float]:
    with contextlib.suppress(psutil.Error):
        return {child.pid: process_awake_s(child.pid) for child in psutil.Process().children()}
    return {}


def _largest_share(before: dict[int, float], after: dict[int, float], wall_s: float) -> float | None:
    """Cores that the busiest worker asked for."""
    used = [seconds - before.get(pid, 0.0) for pid, seconds in after.items()]
    return max(used) / wall_s if used and wall_s > 0 else None


class _Step:
    place = 610
    gives: tuple[type[Evidence], ...] = (Pace,)
    every_split = False

    def run(self, round_: Round) -> None:
        facts = round_.facts
        if not facts.kind.endswith("DataLoader") or facts.kind.startswith("headrace"):
            round_.found.lacks([Pace], "the worker count of this kind of loader cannot be changed from outside")
            return
        if any(one.read.outcome in {"stuck", "crashed"} for one in round_.prepared):
            round_.found.lacks([Pace], "a sample that is stuck or crashes would end the walk")
            return
        experiment = WalkTwice(limit_s=round_.wishes.walk_s / 4, seed=round_.wishes.seed)
        round_.gather(experiment, Pace, alone=True)


STEP = _Step()
