"""What a process and all below it have used of processors and files so far (Linux; elsewhere what psutil tells)."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import resource
import time

import psutil

__all__ = ["Usage"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Sums since the processes began; only differences of two of them say something."""

    own_cpu_s: float
    """Of this process, all threads."""
    below_cpu_s: float
    """Of those it started and those that they started, ended ones too as far as their parents waited for them."""
    read_bytes: int | None
    """From the disk; None: not told."""
    logical_bytes: int | None
    """By reads, also from the page cache and from pipes; None: not told."""

    @classmethod
    def now(cls) -> Usage:
        """Looks. Cost: some 0.2 ms per process."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        below_s = ended.ru_utime + ended.ru_stime
        bytes_read: list[tuple[int, int] | None] = [_bytes_read("self")]  # the kernel adds children that have ended
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                times = child.cpu_times()
                below_s += times.user + times.system
                below_s += times.children_user + times.children_system
                bytes_read.append(_bytes_read(str(child.pid)))
        told = [one for one in bytes_read if one is not None]
        return cls(
            own_cpu_s=time.process_time(),
            below_cpu_s=below_s,
            read_bytes=sum(disk for disk, _ in told) if bytes_read[0] is not None else None,
            logical_bytes=sum(logical for _, logical in told) if bytes_read[0] is not None else None,
        )


def _bytes_read(process: str) -> tuple[int, int] | None:
    """(read_bytes, rchar) of proc_pid_io(5)."""
    try:
        lines = pathlib.Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:
        return None
    told = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    return told.get("read_bytes", 0), told.get("rchar", 0)
