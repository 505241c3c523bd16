"""Reads many samples in one process, throws them away, and looks at what stays: open files and memory."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import os
import pathlib
import resource
import sys
import time
from collections.abc import Iterator
from typing import ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import Growth
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject
from headrace.machine import usable_memory

__all__ = ["STEP", "ReadOn"]

MOST_READS = 1200
"""Enough to tell a leak from a cache that fills: a kilobyte per sample is then a megabyte."""
FEWEST_READS = 12
"""Per quarter: fewer say nothing of growth."""
WARM = 16
"""Reads before the first look: imports, pools and buffers of the libraries come with these."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadOn:
    """The experiment; yields one Growth. Different samples, in data set order."""

    name: ClassVar[str] = "growth over many reads"
    starts_processes: ClassVar[bool] = True  # the child has grown: it serves nothing else

    num_samples: int
    num_workers: int
    limit_s: float
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[Growth]:
        """Reads, and looks after each quarter."""
        free = usable_memory()
        upcoming = iter(range(self.num_samples))
        for index in itertools.islice(upcoming, WARM):
            self._read(subject, bench, index)
        files, memory = [_open_files()], [_private_bytes()]
        # The first quarter finds out how many reads fit into the time; the others do as many.
        quarter, deadline = (self.num_samples - WARM) // 4, time.monotonic() + self.limit_s / 4
        quarter = max(0, min(quarter, MOST_READS // 4))
        for part in range(4):
            done = 0
            while done < quarter and (part or done < FEWEST_READS or time.monotonic() < deadline):
                self._read(subject, bench, next(upcoming))
                done += 1
            quarter = done
            gc.collect()
            files.append(_open_files())
            memory.append(_private_bytes())
        yield Growth(
            num_reads=4 * quarter,
            num_samples=self.num_samples,
            num_workers=self.num_workers,
            files=tuple(files),
            memory_bytes=tuple(memory),
            file_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            free_memory_bytes=free,
        )

    def _read(self, subject: Subject, bench: Bench, index: int) -> None:
        with bench.holding(index, index):
            bench.stop_listening()
            bench.reseed(self.seed, index)
            with contextlib.suppress(Exception):  # which samples fail is another experiment's question
                subject.read(index)


def _open_files() -> int:
    """Descriptors that are open; the limit, if even looking fails for want of one."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as cheap as it can be
    except OSError:
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _private_bytes() -> int:
    """Memory that is this process's own: not shared with its parent, not mapped from a file."""
    try:
        text = pathlib.Path("/proc/self/smaps_rollup").read_text()
    except OSError:  # no descriptor is left to open it with
        return 0
    return sum(
        1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith(("Private_Dirty:", "Swap:"))
    )


class _Step:
    place = 600
    gives: tuple[type[Evidence], ...] = (Growth,)
    every_split = False

    def run(self, round_: Round) -> None:
        facts = round_.facts
        if sys.platform != "linux":
            round_.found.lacks([Growth], "memory and descriptors are looked at on Linux only")
            return
        if facts.is_iterable or not facts.num_samples or not round_.prepared:
            round_.found.lacks([Growth], "the samples of a stream cannot be asked for one by one")
            return
        if any(one.read.outcome in {"stuck", "crashed"} for one in round_.prepared):
            round_.found.lacks([Growth], "a sample that is stuck or crashes would end it")
            return
        experiment = ReadOn(
            num_samples=facts.num_samples,
            num_workers=facts.num_workers,
            limit_s=round_.wishes.walk_s / 5,
            seed=round_.wishes.seed,
        )
        round_.gather(experiment, Growth, alone=True)


STEP = _Step()
