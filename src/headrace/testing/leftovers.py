"""Looks for what a piece of code leaves behind: processes, threads, descriptors, shared memory. Linux only."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

__all__ = ["nothing_left"]

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - looked at, never written to
_POLL_S = 0.02  # how often the look is repeated while something is left


@contextlib.contextmanager
def nothing_left(within_s: float = 5.0) -> Iterator[None]:
    """Fails if code inside the block leaves anything behind.

    Compares child processes (of children too), threads, descriptors and blocks in /dev/shm before and after.
    multiprocessing's fork server and resource tracker, which live once per program, do not count.

    Args:
        within_s: Seconds in which the rest may still go away: a thread or process that was told to end needs a moment.
            Only what stands there all the time is reported, except blocks that unrelated programs use.

    Raises:
        AssertionError: something is left; names each.
    """
    gc.collect()
    before = _everything()
    yield
    gc.collect()
    deadline = time.monotonic() + within_s
    left = _everything() - before
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        left &= _everything() - before
    if left:
        left -= _used_elsewhere()
    assert not left, "left behind: " + ", ".join(sorted(left))


def _everything() -> set[str]:
    """What the process holds now, one text for each thing."""
    return {*_processes(), *_threads(), *_descriptors(), *_shared_memory()}


def _processes() -> Iterator[str]:
    infrastructure = (
        getattr(multiprocessing.forkserver._forkserver, "_forkserver_pid", None),
        getattr(multiprocessing.resource_tracker._resource_tracker, "_pid", None),
    )
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.pid not in infrastructure:
                yield f"process {child.pid} ({child.status()}): {' '.join(child.cmdline())}"


def _threads() -> Iterator[str]:
    return (f"thread {thread.name} {thread.ident}" for thread in threading.enumerate())


def _descriptors() -> Iterator[str]:
    infrastructure = (
        getattr(multiprocessing.forkserver._forkserver, "_forkserver_alive_fd", None),
        getattr(multiprocessing.resource_tracker._resource_tracker, "_fd", None),
    )
    for link in Path("/proc/self/fd").iterdir():
        # The listing itself needs a descriptor, which is gone when its target is read.
        with contextlib.suppress(OSError):
            target = str(link.readlink())
            if int(link.name) not in infrastructure and not target.startswith("/proc/"):
                yield f"descriptor {link.name} ({target})"


def _shared_memory() -> Iterator[str]:
    return (f"shared memory {block}" for block in _SHARED_MEMORY.iterdir())


def _used_elsewhere() -> set[str]:
    """Blocks of shared memory that live processes outside this one's family use: they are theirs."""
    family = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    users = [path for path in Path("/proc").glob("[0-9]*/maps") if int(path.parent.name) not in family]
    found = set()
    for path in users:
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            found |= {
                line.split(maxsplit=5)[5] for line in path.read_text().splitlines() if str(_SHARED_MEMORY) in line
            }
    return {f"shared memory {block}" for block in found}
