"""A slot that a result is made in, before it is known what else belongs to that result: the worker saves a copy.

batch_memory ──lend──▶ slot of the next message          encode: is this buffer inside it? then only its place is sent
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace.engine.run.slots_memory import Section
from headrace.engine.run.slots_shelf import Shelf
from headrace.engine.run.wire import Buffer

__all__ = ["ALIGNMENT", "LentSlot"]

ALIGNMENT = 64  # a cache line, and the widest vector register

Bytes = npt.NDArray[np.uint8]


class LentSlot:
    """The slot of the result that is being made; none before the first loan for it. One thread uses it.

    Args:
        section: Where slots lie.
        shelf: Which are free.
    """

    def __init__(self, section: Section, shelf: Shelf) -> None:
        self._section = section
        self._shelf = shelf
        self._expected = 0  # bytes of the result before: most are of one size
        self._taken: tuple[int, int] | None = None
        self._memory: Bytes | None = None
        self.size = 0
        """Bytes lent so far, gaps included."""

    def lend(self, num_bytes: int) -> Bytes | None:
        """Returns so many bytes of the slot; None if there is no slot, or no place left in it."""
        if self._memory is None:
            capacity = max(self._expected, num_bytes)
            self._taken = self._shelf.take(capacity)
            if self._taken is None:
                return None
            self._memory = np.frombuffer(self._section.block(self._taken[1], capacity), np.uint8)
        begin = -(-self.size // ALIGNMENT) * ALIGNMENT
        if begin + num_bytes > len(self._memory):
            return None
        self.size = begin + num_bytes
        return self._memory[begin : self.size]

    def place_of(self, buffer: Buffer) -> tuple[int, int] | None:
        """Returns where in the slot a buffer begins and ends; None if it lies elsewhere."""
        if self._memory is None:
            return None
        begin = _address(np.frombuffer(buffer, np.uint8)) - _address(self._memory)
        return (begin, begin + len(buffer)) if 0 <= begin <= self.size - len(buffer) else None

    def pass_on(self) -> tuple[int, int]:
        """Returns number and offset of the slot, which now belongs to a message."""
        assert self._taken is not None
        taken, self._expected = self._taken, self.size
        self._forget()
        return taken

    def take_back(self) -> None:
        """Frees the slot, if there is one: nothing that goes out lies in it."""
        if self._taken is not None:
            self._shelf.give_back(self._taken[0])
        self._forget()

    def expect(self, num_bytes: int) -> None:
        """Says how large a result was that did not fit, or was not made here."""
        self._expected = num_bytes

    def _forget(self) -> None:
        self._taken = self._memory = None
        self.size = 0


def _address(memory: Bytes) -> int:
    address: int = memory.ctypes.data
    return address
