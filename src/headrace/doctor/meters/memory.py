"""Follows the memory of a process tree over time, from a side process, so that looking costs the tree nothing but its locks.

What is added up: the proportional set sizes of all processes (what they have mapped, each shared page once), and the shared
memory that none of them has mapped, such as batches that wait in /dev/shm between a worker and the loop. Reading a set
size takes a lock that page faults take as well: rates are measured in other rounds.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from typing import IO, Any, Self

import numpy as np

import headrace
from headrace.doctor.meters.sampling import SHM

__all__ = ["MemoryMoment", "MemoryPeaks", "MemorySampler", "MemorySeries"]

PERIOD_S = 0.25
"""Seconds between looks: peaks of a loader last for batches, not for milliseconds, and one look takes some of them."""
_START_S = 30.0
"""A bare interpreter starts within a tenth of a second; a very busy machine may take longer."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMoment:
    """A process tree at one moment. Bytes, over all its processes."""

    at_s: float
    """When, by `time.monotonic()`."""
    num_processes: int
    """Processes that were alive."""
    num_unread: int
    """Those of them whose memory may not be read: what is said of PSS is without them, and so too low."""
    pss_bytes: int | None
    """Memory that is mapped, each shared page counted once; None: of no process can it be read."""
    anon_bytes: int | None
    """The part of it that belongs to no file: heaps, stacks; it grows if objects are kept."""
    file_bytes: int | None
    """The part that is mapped from files: libraries, memory maps. Can be dropped and read again."""
    shmem_bytes: int | None
    """The part that is shared memory: /dev/shm, memfd, shared mappings."""
    swap_bytes: int | None
    """What was swapped out, each shared page counted once; not part of `pss_bytes`."""
    unmapped_shm_bytes: int | None
    """Shared memory that came since the first look and that no process of the tree has mapped; None: not told."""
    rss_bytes: int
    """The naive sum of resident sets, shared pages counted in each process: for comparison only."""
    shm_used_bytes: int | None
    """In use of /dev/shm, by whomever; None: there is none."""
    open_files: int
    """Descriptors of the process that has the most."""

    @property
    def total_bytes(self) -> int | None:
        """What the tree takes: mapped, and unmapped shared memory where it is told."""
        return None if self.pss_bytes is None else self.pss_bytes + (self.unmapped_shm_bytes or 0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeaks:
    """The highest value of each number; they need not belong to the same moment. Fields as in `MemoryMoment`."""

    total_bytes: int | None
    pss_bytes: int | None
    anon_bytes: int | None
    unmapped_shm_bytes: int | None
    swap_bytes: int | None
    rss_bytes: int
    shm_used_bytes: int | None
    num_processes: int
    num_unread: int
    """Above 0: the peaks of what is not RSS are lower bounds."""
    open_files: int
    file_limit: int | None
    """Descriptors that the process with the most of them may have; None: not told, or no limit."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemorySeries:
    """What was seen of a process tree, from beginning to end."""

    moments: tuple[MemoryMoment, ...]
    """In the order of time; after long runs every second, fourth, ... look."""
    peaks: MemoryPeaks | None
    """Of all looks, also of those that were not kept; None: there were none."""
    shm_size_bytes: int | None
    """Size of /dev/shm; None: there is none."""
    shmem_of: str | None
    """Where unmapped shared memory is seen: `control group`, or `machine`, where that of others counts as well; None:
    nowhere."""
    group_peak_bytes: int | None
    """Cross-check: the most that the control group used, page cache and others in it included; None: not told, or it had
    used more before."""
    why_empty: str | None
    """Why there are no moments; None: there are."""

    def at_batches(self, marks: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
        """Returns how much anonymous memory, in memory or swapped out, there was after how many batches.

        Args:
            marks: (`time.monotonic()`, batches so far), in the order of time. In between it is interpolated.

        Returns:
            (batches, bytes) of the moments between the first mark and the last, for `growth.judge_growth`.
        """
        if not marks:
            return ()
        times, counts = zip(*marks, strict=True)
        return tuple(
            (float(np.interp(one.at_s, times, counts)), one.anon_bytes + (one.swap_bytes or 0))
            for one in self.moments
            if one.anon_bytes is not None and times[0] <= one.at_s <= times[-1]
        )


class MemorySampler:
    """Follows a process and all its descendants while a `with` block runs.

        with MemorySampler() as sampler:
            ...
        sampler.series.peaks.total_bytes

    The side process ends with the block, and with this process, even if that is killed. It is not counted itself.
    Elsewhere than on Linux nothing is started, and the series says so.
    """

    series: MemorySeries
    """What was seen; set when the block has ended."""

    def __init__(self, root: int | None = None, *, period_s: float = PERIOD_S) -> None:
        """Remembers what is to be followed.

        Args:
            root: The process at the top. Default: this one.
            period_s: Seconds between looks, 0.2 to 0.5 for a usual run. If a look takes more than a tenth of it, looks
                become rarer.
        """
        self._root = os.getpid() if root is None else root
        self._period_s = period_s
        self._side: subprocess.Popen[bytes] | None = None
        self._told: IO[bytes] | None = None
        self._door: socket.socket | None = None

    def __enter__(self) -> Self:
        """Starts; returns after a first look, so that what is made from here on is seen as growth."""
        if sys.platform != "linux":
            return self
        self._door, theirs = socket.socketpair()
        self._told = tempfile.TemporaryFile()
        # Only the standard library is wanted there: no site, no user's modules, no environment variables.
        program = (
            "import sys; sys.path.append(sys.argv[1]); from headrace.doctor.meters import sampling; "
            "sampling.main(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))"
        )
        place = str(pathlib.Path(headrace.__file__).parents[1])
        command = [sys.executable, "-I", "-S", "-B", "-c", program, place]
        command += map(str, (self._root, os.getpid(), self._period_s))
        self._door.settimeout(_START_S)
        try:
            with theirs:
                self._side = subprocess.Popen(
                    command, stdin=theirs.fileno(), stdout=self._told, stderr=subprocess.DEVNULL
                )
            self._door.recv(1)  # nothing comes if it has failed: said at the end
        except BaseException as error:
            self._end()
            if not isinstance(error, OSError):
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        """Takes a last look, ends the side process, and sets `series`."""
        if self._side is None or self._told is None or self._door is None:
            self.series = _empty(
                "memory is followed on Linux only"
                if sys.platform != "linux"
                else "the process that follows memory could not be started"
            )
            return
        try:
            self._door.send(b"s")
            self._side.wait(_START_S)
            self._told.seek(0)
            self.series = _series(json.loads(self._told.read()))
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.series = _empty(f"the process that follows memory has ended early (status {self._side.poll()})")
        finally:
            self._end()

    def _end(self) -> None:
        if self._side is not None:
            self._side.kill()
            self._side.wait()
        for one in (self._door, self._told):
            if one is not None:
                one.close()
        self._side = None


def _empty(why: str) -> MemorySeries:
    return MemorySeries(
        moments=(), peaks=None, shm_size_bytes=_shm_size(), shmem_of=None, group_peak_bytes=None, why_empty=why
    )


def _series(told: dict[str, Any]) -> MemorySeries:
    moments = tuple(map(_moment, told["looks"]))
    most, is_told = told["peaks"], told["shmem_of"] is not None
    is_read = any(one.pss_bytes is not None for one in moments)
    return MemorySeries(
        moments=moments,
        peaks=MemoryPeaks(
            total_bytes=most["total"] if is_read else None,
            pss_bytes=most["pss"] if is_read else None,
            anon_bytes=most["anon"] if is_read else None,
            unmapped_shm_bytes=most["unmapped_shm"] if is_read and is_told else None,
            swap_bytes=most["swap"] if is_read else None,
            rss_bytes=most["rss"],
            shm_used_bytes=most["shm_used"] if _shm_size() is not None else None,
            num_processes=most["num_processes"],
            num_unread=most["num_unread"],
            open_files=most["open_files"],
            file_limit=most["file_limit"] or None,
        ),
        shm_size_bytes=_shm_size(),
        shmem_of=told["shmem_of"],
        group_peak_bytes=told["group_peak"],
        why_empty=None,
    )


def _moment(look: dict[str, Any]) -> MemoryMoment:
    is_read = look["num_unread"] < look["num_processes"]
    return MemoryMoment(
        at_s=look["at_s"],
        num_processes=look["num_processes"],
        num_unread=look["num_unread"],
        pss_bytes=look["pss"] if is_read else None,
        anon_bytes=look["anon"] if is_read else None,
        file_bytes=look["file"] if is_read else None,
        shmem_bytes=look["shmem"] if is_read else None,
        swap_bytes=look["swap"] if is_read else None,
        unmapped_shm_bytes=look["unmapped_shm"],
        rss_bytes=look["rss"],
        shm_used_bytes=look["shm_used"],
        open_files=look["open_files"],
    )


def _shm_size() -> int | None:
    return shutil.disk_usage(SHM).total if pathlib.Path(SHM).is_dir() else None
