"""Prepares samples by two threads at once, for a loader that uses threads: do they compute side by side, or take turns?"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

import psutil

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import ThreadPace
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject
from headrace.machine import thread_awake_s, usable_cores

__all__ = ["STEP", "ReadByThreads"]

NUM_TURNS = 4
"""Turns of one thread and of two, each."""
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
            # In turn, so that what others do to the machine happens to both.
            turns = [self._read(subject, num) for _ in range(NUM_TURNS) for num in (1, 2)]
        alone, together = _Turn.joined(turns[::2]), _Turn.joined(turns[1::2])
        if alone.ran_s > 0:
            yield ThreadPace(
                runner=runner,
                num_threads=num_threads,
                num_samples=alone.num_samples,
                alone_share=alone.awake_s / alone.wall_s,
                gain=together.ran_s / together.wall_s / (alone.ran_s / alone.wall_s),
                spare_cores=together.idle_s / together.wall_s if usable_cores() >= 2 else 0.0,
                together_share=together.awake_s / together.wall_s,
            )

    def _read(self, subject: Subject, num_threads: int) -> _Turn:
        counts, awake_s = [0] * num_threads, [0.0] * num_threads
        deadline = time.monotonic() + self.limit_s / NUM_TURNS

        def read(thread: int) -> None:
            # Each looks at itself: a thread outside may not get Python's lock as long as these hand it on to each other.
            before = thread_awake_s()
            while time.monotonic() < deadline:
                subject.read(self.indices[(counts[thread] + thread) % len(self.indices)])
                counts[thread] += 1
            awake_s[thread] = thread_awake_s() - before

        threads = [threading.Thread(target=read, args=(number,)) for number in range(num_threads)]
        idle_before, ran_before, started = psutil.cpu_times().idle, time.process_time(), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return _Turn(
            wall_s=time.monotonic() - started,
            awake_s=sum(awake_s),
            ran_s=time.process_time() - ran_before,
            idle_s=psutil.cpu_times().idle - idle_before,
            num_samples=counts[0],
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """Some time in which threads read."""

    wall_s: float
    awake_s: float
    """That the threads ran or waited for a core."""
    ran_s: float
    """That they ran."""
    idle_s: float
    """That cores of the machine stood idle."""
    num_samples: int
    """By the first thread."""

    @classmethod
    def joined(cls, turns: Sequence[_Turn]) -> _Turn:
        """Several turns as one."""
        return cls(
            **{field.name: sum(getattr(turn, field.name) for turn in turns) for field in dataclasses.fields(cls)}
        )


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
