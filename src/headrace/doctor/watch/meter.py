"""Times the stages of one batch where it is prepared: in a worker, or in the training process without workers.

The fetchers of torch read their attributes in a fixed order: `auto_collation` first, then samples are made, then
`collate_fn` is read and called. Reading is what is looked at, so no frame of ours is in the user's tracebacks.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from headrace.doctor.watch.board import Slot

__all__ = ["Meter", "num_bytes"]

QUICK_S, QUICK_EVERY = 5e-4, 8
"""Of batches that take less than half a millisecond, one in eight is measured: the clocks would be felt."""
DETAIL_EVERY = 4
"""Batches between two looks at what costs more than a clock: the scheduler's account, and the size of a batch."""


class Meter:
    """Fills the slots of one worker."""

    def __init__(self, slots: memoryview[float]) -> None:
        self._slots = slots
        self._begun_s = self._joined_s = -1.0
        self._ended_s = -1.0
        self._cpu_s = self._queued_s = 0.0
        self._is_detailed = False
        self._num_left_out = QUICK_EVERY
        self._schedule = _open_schedule(os.getpid(), threading.get_ident())

    def begin_pass(self) -> None:
        """The time until the next batch is asked for is not idleness."""
        self._ended_s = -1.0

    def begin(self) -> None:
        """A batch is about to be prepared."""
        if self._num_left_out < QUICK_EVERY - 1:
            self._num_left_out += 1
            return
        slots = self._slots
        self._is_detailed = slots[Slot.BATCHES] % DETAIL_EVERY == 1
        if self._is_detailed:
            self._queued_s = self._read_queued_s()
        self._cpu_s = time.thread_time()
        now = time.perf_counter()
        if self._ended_s >= 0:
            slots[Slot.IDLE_S] += now - self._ended_s
        self._begun_s, self._joined_s = now, -1.0

    def join(self) -> None:
        """Its samples are there, and are about to be joined."""
        if self._begun_s >= 0:  # else somebody looks at the attribute for another reason
            self._joined_s = time.perf_counter()
            self._cpu_s = time.thread_time() - self._cpu_s
            if self._is_detailed:
                self._queued_s = self._read_queued_s() - self._queued_s

    def end(self, batch: Any = None) -> float:
        """The batch is ready; returns when that was. Without the batch itself, its size is not measured."""
        now = time.perf_counter()
        if self._joined_s >= 0:
            self._num_left_out = 0 if now - self._begun_s < QUICK_S else QUICK_EVERY
            slots, fetch_s = self._slots, self._joined_s - self._begun_s
            slots[Slot.FETCH_S] += fetch_s
            slots[Slot.FETCH_CPU_S] += self._cpu_s
            slots[Slot.COLLATE_S] += now - self._joined_s
            if self._is_detailed:
                if self._schedule is not None:
                    slots[Slot.DETAILED_S] += fetch_s
                    slots[Slot.QUEUED_S] += self._queued_s
                if batch is not None:
                    slots[Slot.SIZED] += 1
                    slots[Slot.BYTES] += num_bytes(batch)
            slots[Slot.LOG_S] += math.log(max(now - self._begun_s, 1e-7))
            slots[Slot.BATCHES] += 1
        self._begun_s = self._joined_s = -1.0
        self._ended_s = now
        return now

    def _read_queued_s(self) -> float:
        """Seconds that this thread has waited for a core so far: the second field of Linux' account."""
        if self._schedule is None:
            return 0.0
        try:
            return int(os.pread(self._schedule, 64, 0).split()[1]) * 1e-9
        except (OSError, IndexError, ValueError):
            self._schedule = None
            return 0.0


@functools.cache  # one descriptor for each thread, and a new one after a fork
def _open_schedule(_process: int, _thread: int) -> int | None:
    try:
        return os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # not Linux, or without this account
        return None


def num_bytes(value: Any, depth: int = 4) -> int:
    """Returns the bytes of the tensors and arrays in a batch, as deep as batches usually are."""
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth == 0:
        return 0
    if isinstance(value, Mapping):
        return sum(num_bytes(part, depth - 1) for part in value.values())
    if isinstance(value, (list, tuple)) and len(value) <= 64:
        return sum(num_bytes(part, depth - 1) for part in value)
    return len(value) if isinstance(value, (bytes, bytearray)) else 0
