"""MemoryStore: entries in one nameless mapped file that all processes of a loader share.

    words (64 bytes) | index: one place per row, 0 = nothing | entries, one behind the other

The file is made before workers start; they inherit it, or are handed its descriptor. It is sparse: memory is used as
entries come. No directory lists it, so nothing can remain even if every process is killed.

An entry is written first and its place into the index last, with one store of eight bytes. A worker that is killed
leaves at most a piece of memory unused, never half an entry that is read.
"""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing.context
import multiprocessing.reduction
import os
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.cache.entry import MISS, View, alike, look
from headrace.engine.cache.lock import closing_without_locks, locked
from headrace.engine.cache.packing import unpack
from headrace.errors import SampleId

__all__ = ["MemoryStore"]

Rows = npt.NDArray[np.int64]

_USED, _NUM_ENTRIES = 0, 1  # words


class MemoryStore:
    """Entries of up to `max_bytes` in all; first come, nothing is evicted. Beside them, the index takes 8 bytes a row.

    Under fork every worker has the same memory; under spawn and forkserver it travels as a descriptor. Pickled at
    any other time the store comes out empty: a plan that is saved or sent away is a plan, not its memory.
    """

    def __init__(self, num_rows: int, max_bytes: int, fd: int | None = None) -> None:
        self.num_rows, self.max_bytes = num_rows, max_bytes
        self._begin = -(-(64 + 8 * num_rows) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._end = self._begin + max_bytes
        if fd is None:
            fd = _nameless_file()
            os.ftruncate(fd, self._end)
        self._fd = fd
        self._map = mmap.mmap(fd, self._end)
        self.bytes = np.frombuffer(self._map, np.uint8)
        self._words = self.bytes[:64].view(np.int64)
        self._index = self.bytes[64 : 64 + 8 * num_rows].view(np.int64)
        self._sound = np.zeros(num_rows, np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        if multiprocessing.context.get_spawning_popen() is None:
            return MemoryStore, (self.num_rows, self.max_bytes)
        return _attach, (self.num_rows, self.max_bytes, multiprocessing.reduction.DupFd(self._fd))

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            closing_without_locks(self._fd)

    def get(self, row: int, sample_id: SampleId, stamp: bytes) -> Any:  # noqa: ARG002 - a store's signature
        """Returns the sample of a row, its own copy; MISS if it is not kept with that stamp."""
        view = self.look(row, stamp)
        return MISS if view is None else unpack(view.layout, view.block.copy())

    def look(self, row: int, stamp: bytes) -> View | None:
        """Returns the entry of a row in its place, for copying; None if it is not kept with that stamp, or damaged.

        Its checksum is looked at when this process first meets it, and after that trusted: a place that was written
        is never written again. For a picture of 150 KB the check takes half as long as the copy.
        """
        place = int(self._index[row])
        view = look(self.bytes[place:], stamp) if place else None
        if view is None or self._sound[row] == place:
            return view
        if not view.is_sound():
            return None
        self._sound[row] = place
        return view

    def alike(self, rows: Rows, stamps: npt.NDArray[np.uint8]) -> tuple[bytes, npt.NDArray[np.int64]] | None:
        """Returns what `entry.alike` says of the entries of some rows; None if one is not kept.

        Args:
            rows: (B,) each in [0, N).
            stamps: (B, 16) what the content of each is now.
        """
        places = self._index[rows]
        for row, stamp in zip(*(part[self._sound[rows] != places] for part in (rows, stamps)), strict=True):
            if self.look(int(row), stamp.tobytes()) is None:
                return None
        return alike(self.bytes, places, stamps) if places.all() else None

    def put(self, row: int, sample_id: SampleId, entry: Any) -> bool:  # noqa: ARG002 - a store's signature
        """Keeps an entry; False if it does not fit any more."""
        with locked(self._fd):
            place = self._begin + int(self._words[_USED])
            if place + entry.nbytes > self._end:
                return False
            self._words[_USED] += entry.nbytes
        self.bytes[place : place + entry.nbytes] = entry
        with locked(self._fd):  # taking a lock orders memory: whoever sees the place sees the entry
            self._words[_NUM_ENTRIES] += self._index[row] == 0
            self._index[row] = place
        return True

    def usage(self) -> tuple[int, int]:
        """Returns how many samples are kept, and their bytes, with what was left behind by stale and lost ones."""
        return int(self._words[_NUM_ENTRIES]), int(self._words[_USED])

    def describe(self) -> str:
        """Returns where the entries lie, in a few words."""
        return "memory"


def _nameless_file() -> int:
    """Opens a file that no directory lists."""
    if hasattr(os, "memfd_create"):  # Linux
        return os.memfd_create("headrace-cache")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _attach(num_rows: int, max_bytes: int, handle: Any) -> MemoryStore:
    """Makes a worker's view of the store."""
    return MemoryStore(num_rows, max_bytes, handle.detach())
