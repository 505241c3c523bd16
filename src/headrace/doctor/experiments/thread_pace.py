"""Prepares samples by two threads at once, for a loader that uses threads: do they compute side by side, or take turns?"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import ThreadPace
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject
from headrace.machine import thread_awake_s

__all__ = ["STEP", "ReadByThreads"]

FEWEST = 4
"""Readable samples that are needed; each thread prepares them again and again until the time is over."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadByThreads:
    """The experiment; yields one ThreadPace, or nothing if the loader uses no threads."""

    name: ClassVar[str] = "pace of threads"
    starts_processes: ClassVar[bool] = False

    indices: tuple[int, ...]
    limit_s: float
    """Seconds alone, and as many together."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[ThreadPace]:
        """Reads in this process: what counts is whether Python's lock is held, and not who else uses the cores."""
        runner, num_threads = _threads_of(subject)
        if num_threads < 2:
            return
        with bench.holding(None, None, stage="read by threads"):
            bench.stop_listening()
            share, count = self._read(subject, 1)
            share_together, _ = self._read(subject, 2)
        yield ThreadPace(
            runner=runner,
            num_threads=num_threads,
            num_samples=count,
            alone_share=share,
            together_share=share_together,
        )

    def _read(self, subject: Subject, num_threads: int) -> tuple[float, int]:
        """(cores asked for while so many threads read, samples that the first one read)."""
        counts, awake_s = [0] * num_threads, [0.0] * num_threads
        deadline = time.monotonic() + self.limit_s

        def read(thread: int) -> None:
            # Each looks at itself: a thread outside may not get Python's lock as long as these hand it on to each other.
            before = thread_awake_s()
            while time.monotonic() < deadline:
                subject.read(self.indices[(counts[thread] + thread) % len(self.indices)])
                counts[thread] += 1
            awake_s[thread] = thread_awake_s() - before

        threads = [threading.Thread(target=read, args=(number,)) for number in range(num_threads)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(awake_s) / (time.monotonic() - started), counts[0]


def _threads_of(subject: Subject) -> tuple[str, int]:
    """(runner, number of threads) of a headrace loader; others have none in which samples are prepared."""
    said = getattr(subject.loader, "_arguments", None)
    runner = getattr(getattr(subject.loader, "_runner", None), "name", None)
    if said is None or runner not in {"threads", "host"}:
        return "", 0
    return runner, subject.num_workers


class _Step:
    place = 620
    gives: tuple[type[Evidence], ...] = (ThreadPace,)
    every_split = False

    def run(self, round_: Round) -> None:
        readable: Sequence[int] = [one.read.index for one in round_.prepared if one.read.outcome == "ok"]
        if not round_.facts.kind.startswith("headrace") or len(readable) < FEWEST:
            round_.found.lacks([ThreadPace], "the loader prepares no samples in threads")
            return
        experiment = ReadByThreads(indices=tuple(readable[:16]), limit_s=round_.wishes.walk_s / 8)
        records, ending = round_.ask(experiment)
        for record in records:
            round_.found.add(record)
        if records or ending.outcome != "done":
            round_.found.note(experiment.name, ending)
        if not records:
            round_.found.lacks([ThreadPace], "the loader prepares no samples in threads")


STEP = _Step()
