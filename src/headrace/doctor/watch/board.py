"""Memory that a loader's workers write and the training process reads: times per worker, and when each batch was ready.

Shared memory without a name: it ends with the processes that hold it, however they end. Each worker has slots of its
own, so nobody locks; a reader may see a sum that lacks the newest batch, and that is all.

    board = the slots of one loader
      worker 0: Slot.COUNT sums      worker 1: ...      (8-byte floats)
      ring: (batch number, when it was ready) at batch number modulo RING
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

__all__ = ["MAX_WORKERS", "Board", "Boards", "Slot"]

MAX_WORKERS = 64
"""More workers than that are not seen; boards of fixed size need no negotiation."""
RING = 1024
"""Batches under way at once: workers times prefetch. 64 workers with 16 each fit."""
NUM_BOARDS = 64
"""Loaders with workers at one time. Memory that nobody writes to is not taken."""


class Slot:
    """Sums that one worker keeps; plain numbers and no enumeration, for they are used for each batch."""

    BATCHES = 0
    FETCH_S = 1
    FETCH_CPU_S = 2
    COLLATE_S = 3
    IDLE_S = 4
    DETAILED_S = 5
    """Seconds in the data set of the batches for which the next one was measured."""
    QUEUED_S = 6
    SIZED = 7
    BYTES = 8
    LOG_S = 9
    """Logarithms of the seconds that batches took: their mean is hardly moved by a few slow ones."""
    COUNT = 10


_BOARD = MAX_WORKERS * Slot.COUNT + 2 * RING


class Boards:
    """All boards of a process, over one file without a name. Travels to workers however they are started."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            file = tempfile.TemporaryFile()  # noqa: SIM115 - the descriptor is what lives on
            descriptor = os.dup(file.fileno())
            file.close()
            os.ftruncate(descriptor, NUM_BOARDS * _BOARD * 8)
        self.descriptor = descriptor
        self._memory: memoryview[float] = memoryview(mmap.mmap(descriptor, NUM_BOARDS * _BOARD * 8)).cast("d")
        self._free = list(range(NUM_BOARDS))[::-1]

    def take(self) -> Board | None:
        """Returns an empty board; None if all are in use."""
        if not self._free:
            return None
        board = self.board(self._free.pop())
        board.clear()
        return board

    def give_back(self, board: Board) -> None:
        """Makes a board free for the next loader."""
        self._free.append(board.number)

    def board(self, number: int) -> Board:
        """Returns one board by its number."""
        return Board(number, self._memory[number * _BOARD : (number + 1) * _BOARD])

    def close(self) -> None:
        """Gives the descriptor back; the memory goes when its last user does."""
        os.close(self.descriptor)

    def __reduce__(self) -> Any:
        from multiprocessing.reduction import DupFd

        return _opened, (DupFd(self.descriptor),)


def _opened(descriptor: Any) -> Boards:
    return Boards(descriptor.detach())


class Board:
    """The slots of one loader."""

    def __init__(self, number: int, memory: memoryview[float]) -> None:
        self.number = number
        self._memory = memory
        self._ring = memory[MAX_WORKERS * Slot.COUNT :]

    def worker(self, number: int) -> memoryview[float]:
        """Returns the sums of one worker, to be read and written by `Slot`."""
        return self._memory[number * Slot.COUNT : (number + 1) * Slot.COUNT]

    def note_ready(self, batch: int, time_s: float) -> None:
        """A worker has a batch ready. The number comes last: whoever sees it finds the time that belongs to it."""
        at = 2 * (batch % RING)
        self._ring[at + 1] = time_s
        self._ring[at] = batch

    def ready_s(self, batch: int) -> float | None:
        """Returns when a batch was ready; None if that is not known, or no longer."""
        at = 2 * (batch % RING)
        return self._ring[at + 1] if self._ring[at] == batch else None

    def clear(self) -> None:
        """Sets everything to its start."""
        for at in range(MAX_WORKERS * Slot.COUNT):
            self._memory[at] = 0.0
        for at in range(0, 2 * RING, 2):
            self._ring[at] = -1.0
