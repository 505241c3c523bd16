"""One lock for a file that threads and processes share: it dies with its holder, so nobody waits for the dead."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator

__all__ = ["closing_without_locks", "locked"]

_in_process = threading.Lock()
"""A lock on a file belongs to the whole process, and closing any descriptor of that file gives it up; so one at a time."""


def _renew() -> None:
    # A worker may be forked while a thread of its parent holds the lock, and has no such thread to release it.
    global _in_process
    _in_process = threading.Lock()


os.register_at_fork(after_in_child=_renew)


@contextlib.contextmanager
def locked(fd: int) -> Iterator[None]:
    """Runs a block while no other thread or process runs one for the same file."""
    with _in_process:
        fcntl.lockf(fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(fd, fcntl.LOCK_UN)


def closing_without_locks(fd: int) -> None:
    """Closes a descriptor at a moment when that takes no lock away; if a thread holds one, leaves it to the kernel."""
    # Called by the collector, which may interrupt the very thread that holds the lock: never wait here.
    if _in_process.acquire(blocking=False):
        try:
            os.close(fd)
        finally:
            _in_process.release()
