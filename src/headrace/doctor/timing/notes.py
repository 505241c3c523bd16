"""What a thread that makes batches writes down of each: one record in a file of its own."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.timing.stage_clock import NUM_STAGES, StageClock, listen_to_opening
from headrace.machine import waited_for_core_s

__all__ = ["MADE", "Notes"]

MADE = struct.Struct(f"<5q5d{2 * NUM_STAGES}d")
"""Pass, number in the pass, samples, bytes read, requests; began, fetched, made, slowest sample, waited for a core (below 0:
not told); walls and CPUs by stage."""


class Notes:
    """The batch that a thread has in hand, and the file of those it had."""

    def __init__(self) -> None:
        self.clock = StageClock()
        self._file: int | None = None
        self._io: ReadBytes | None = None
        self._began_s = self._fetched_s = 0.0
        self._read: tuple[int, int] = (0, -1)
        self._late_s = -1.0

    @property
    def is_open(self) -> bool:
        """True if there is a file."""
        return self._file is not None

    def open(self, path: str) -> None:
        """Opens the file, `path` and an ending."""
        self._file = os.open(f"{path}.made", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._io = ReadBytes()

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Around the making of a batch, up to the moment when it is there."""
        self.clock.clear()
        io, late_s = self._io, waited_for_core_s()
        before = None if io is None else io.now()
        listen_to_opening(self.clock)
        self._began_s = self._fetched_s = time.monotonic()
        try:
            yield
        finally:
            listen_to_opening(None)
        after = None if io is None else io.now()
        self._late_s = -1.0 if late_s is None else max(0.0, (waited_for_core_s() or 0.0) - late_s)
        self._read = (0, -1) if before is None or after is None else (after[0] - before[0], after[1] - before[1])

    def joining(self, collate: Callable[[Any], Any], samples: Any) -> Any:
        """Around the joining of samples, which are all there now."""
        self._fetched_s = time.monotonic()
        return self.clock.collating(collate, samples)

    def write(self, key: tuple[int, int], num_samples: int, *, tells_bytes: bool = True) -> None:
        """Writes it down: it is on its way.

        Args:
            key: Pass, and number in it.
            num_samples: In it.
            tells_bytes: False: what this process read meanwhile was not for this batch alone.
        """
        if self._file is None:
            return
        clock = self.clock
        record = MADE.pack(
            *key,
            num_samples,
            *(self._read if tells_bytes else (0, -1)),
            self._began_s,
            self._fetched_s,
            time.monotonic(),
            clock.slowest_s,
            self._late_s,
            *clock.walls_s,
            *clock.cpus_s,
        )
        os.write(self._file, record)

    def close(self) -> None:
        """Gives the files back."""
        if self._file is not None:
            os.close(self._file)
        if self._io is not None:
            self._io.close()
        self._file = self._io = None


class ReadBytes:
    """What this process has read so far, in bytes and calls, as the kernel counts; mapped files are not counted."""

    def __init__(self) -> None:
        self._file: int | None
        try:
            self._file = os.open("/proc/self/io", os.O_RDONLY)
        except OSError:  # another system, or not allowed
            self._file = None
        self._own_bytes = self._own_calls = 0

    def close(self) -> None:
        """No more looks."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def now(self) -> tuple[int, int] | None:
        """Returns (bytes, calls), the looks themselves left out; None: not told."""
        if self._file is None:
            return None
        try:
            content = os.pread(self._file, 512, 0)
            fields = dict(line.split(b": ") for line in content.splitlines())
            told = int(fields[b"rchar"]) - self._own_bytes, int(fields[b"syscr"]) - self._own_calls
        except (OSError, ValueError, KeyError):
            return None
        self._own_bytes += len(content)
        self._own_calls += 1
        return told
