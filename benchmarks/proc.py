"""Processes as Linux sees them: CPU time and memory of a process and all its descendants."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> list[int]:
    """Returns the living descendants of a process."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        own = children.get(waiting.pop(), [])
        found += own
        waiting += own
    return found


def cpu_of_descendants_s() -> float:
    """CPU seconds of this process's living descendants and of the children that these have waited for."""
    rows = [_stat(pid) for pid in descendants(os.getpid())]
    return sum(sum(int(ticks) for ticks in fields[11:15]) for fields in rows if fields) / TICKS_PER_S


def memory_bytes(root: int) -> int:
    """Proportional set size of a process and its descendants, plus shared memory that they hold but have not mapped."""
    total, held, mapped = 0, {}, set()
    for pid in [root, *descendants(root)]:
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            total += next(int(row.split()[1]) for row in rollup.splitlines() if row.startswith("Pss:")) * 1024
            mapped |= {row.split()[4] for row in Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()}
            for entry in os.scandir(f"/proc/{pid}/fd"):
                if str(Path(entry.path).readlink()).startswith(("/dev/shm/", "/memfd:")):
                    status = Path(entry.path).stat()
                    held[status.st_ino] = status.st_blocks * 512
        except (OSError, StopIteration):  # it ended meanwhile
            continue
    return total + sum(size for inode, size in held.items() if str(inode) not in mapped)


class Watch(threading.Thread):
    """Looks at the memory of a process tree from outside until it is stopped."""

    def __init__(self, pid: int, interval_s: float = 0.1) -> None:
        super().__init__(daemon=True)
        self.pid, self.interval_s = pid, interval_s
        self.seen: list[tuple[float, int]] = []
        """(when on the monotonic clock, bytes)"""
        self.stopping = threading.Event()

    def run(self) -> None:
        """Called in the thread."""
        while not self.stopping.wait(self.interval_s):
            size = memory_bytes(self.pid)
            if size:
                self.seen.append((time.monotonic(), size))

    def stop(self) -> list[tuple[float, int]]:
        """Ends the watch and returns what was seen."""
        self.stopping.set()
        self.join()
        return self.seen


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent, ...; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
