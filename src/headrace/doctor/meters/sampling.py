"""The side process that follows the memory of a process tree. Started by memory.py; imports the standard library only.

Its standard input is a socket: it sends a byte after its first look, and as soon as a byte comes in, it writes what it saw
to its standard output, a file, and ends. It ends without a word if its parent has ended, however that happened. Neither
end depends on who else holds the other side of the socket: workers that were forked meanwhile do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import signal
import socket
import sys
import time

from headrace.doctor.meters.control_group import control_group_of
from headrace.doctor.meters.process_tree import ProcessTree, TreeMemory

__all__ = ["MOST_MOMENTS", "SHM", "Look", "Seen", "main"]

MOST_MOMENTS = 2048
"""Moments that are kept; when they are reached, every second one is dropped, and looks become half as frequent."""
MOST_SHARE = 0.1
"""Share of one core that looking may take: after a look that took long, the next one comes later."""
SHM = "/dev/shm"  # noqa: S108 - where the kernel puts it


@dataclasses.dataclass
class Look(TreeMemory):
    """What is seen at one moment."""

    at_s: float = 0.0
    """On the monotonic clock, which all processes share."""
    unmapped_shm: int | None = None
    """Growth of shared memory since the first look that no process has mapped; None: not told."""
    shm_used: int | None = None
    """Bytes in use of /dev/shm; None: there is none."""


class Seen:
    """Looks that are kept, and the high-water marks of all."""

    def __init__(self) -> None:
        self.looks: list[Look] = []
        self.every = 1
        """Periods between looks."""
        self.peaks: dict[str, int] = {}

    def add(self, look: Look) -> None:
        """Drops every second one if there are too many."""
        if len(self.looks) == MOST_MOMENTS:
            del self.looks[1::2]
            self.every *= 2
        self.looks.append(look)
        unmapped = look.unmapped_shm or 0
        values = {name: getattr(look, name) for name in ("pss", "rss", "anon", "swap", "num_processes", "num_unread")}
        values |= {"total": look.pss + unmapped, "unmapped_shm": unmapped, "shm_used": look.shm_used or 0}
        for name, value in values.items():
            self.peaks[name] = max(self.peaks.get(name, 0), value)
        if look.open_files >= self.peaks.get("open_files", 0):
            self.peaks |= {"open_files": look.open_files, "file_limit": look.file_limit}


class _Watch:
    def __init__(self, root: int) -> None:
        self._tree = ProcessTree(root, without=frozenset({os.getpid()}))
        self._group = control_group_of(root)
        self.shmem_of: str | None = "control group"
        if self._group is None or self._group.shmem_bytes() is None:
            self.shmem_of = "machine" if _machine_shmem() is not None else None
        self._unmapped_at_first: int | None = None

    def group_peak(self) -> int | None:
        return self._group.peak_bytes() if self._group is not None else None

    def look(self) -> Look:
        at_s = time.monotonic()
        found = Look(**dataclasses.asdict(self._tree.look()), at_s=at_s)
        shmem = self._shmem()
        if shmem is not None and found.num_unread < max(1, found.num_processes):
            unmapped = shmem - found.shmem
            if self._unmapped_at_first is None:
                self._unmapped_at_first = unmapped
            # What was there before, mapped or not, is others', or counted as mapped.
            found.unmapped_shm = max(0, unmapped - self._unmapped_at_first)
        with contextlib.suppress(OSError):
            about = os.statvfs(SHM)
            found.shm_used = (about.f_blocks - about.f_bfree) * about.f_frsize
        return found

    def _shmem(self) -> int | None:
        if self.shmem_of == "control group" and self._group is not None:
            return self._group.shmem_bytes()
        return _machine_shmem()


def main(root: int, parent: int, period_s: float) -> None:
    """Looks until it is told to stop, or its parent ends."""
    # Ctrl-C reaches the whole group; the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    door = socket.socket(fileno=os.dup(0))
    watch, seen, stopping = _Watch(root), Seen(), False
    peak_before = watch.group_peak()
    while True:
        began = time.monotonic()
        seen.add(watch.look())
        if stopping:
            break
        if len(seen.looks) == 1:
            door.send(b"r")
        took_s = time.monotonic() - began
        stopping = _told_to_stop(door, parent, max(period_s * seen.every - took_s, took_s / MOST_SHARE))
    peak = watch.group_peak()
    told = {
        "looks": [dataclasses.asdict(one) for one in seen.looks],
        "peaks": seen.peaks,
        "shmem_of": watch.shmem_of,
        "group_peak": peak if peak is not None and peak_before is not None and peak > peak_before else None,
    }
    sys.stdout.write(json.dumps(told))


def _told_to_stop(door: socket.socket, parent: int, wait_s: float) -> bool:
    """Waits; True once a byte has come. Ends the process if its parent has ended."""
    with contextlib.ExitStack() as stack:
        watched: list[int] = [door.fileno()]
        with contextlib.suppress(OSError, AttributeError):  # an older kernel or Python: it is found out after the wait
            watched.append(os.pidfd_open(parent))
            stack.callback(os.close, watched[-1])
        ready, _, _ = select.select(watched, (), (), wait_s)
    if os.getppid() != parent:
        raise SystemExit(1)
    return door.fileno() in ready


def _machine_shmem() -> int | None:
    """Shared memory of the whole machine: that of others is in it."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("Shmem:"):
                return 1024 * int(line.split()[1])
    return None
