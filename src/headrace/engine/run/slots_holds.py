"""What the consumer holds: which slots it still has views of, and giving them back when the last view dies.

Every array and tensor of a result is made over one base object, which knows the memory of the result. They keep it
alive, and so do their slices, reshapes, and conversions between numpy and torch; its finalizer gives the slot back.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import weakref

import numpy as np

from headrace.engine.run import slots_forks
from headrace.engine.run.slots_memory import FREE, Section, whole_pages

__all__ = ["Holds"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Hold:
    """One result, from its arrival to the end of its last view."""

    slot: int
    start: int
    size: int
    since: float


class Holds:
    """The consumer's books about the section of one worker; lives as long as the last view of a result in it."""

    def __init__(self, section: Section) -> None:
        self._section = section
        self._owner_pid = os.getpid()
        self._is_closed = False
        self._holds: set[_Hold] = set()
        self._fenced: collections.deque[_Hold] = collections.deque()  # no view here, but perhaps in a forked child

    def hold(self, slot: int, start: int, size: int) -> memoryview:
        """Returns the bytes of a slot, writable, and free to be cut up; while any part lives the slot is not reused."""
        hold = _Hold(slot, start, size, slots_forks.now())
        slots_forks.held.add(hold)
        self._holds.add(hold)
        base = self._section.block(start, size)
        weakref.finalize(base, self._end, hold).atexit = False
        return np.frombuffer(base, np.uint8).data

    def look_up(self) -> None:
        """Gives slots back for which only a forked child stood in the way, if it has ended."""
        for _ in range(len(self._fenced)):
            self._end(self._fenced.popleft())

    def close(self) -> None:
        """Gives all memory back that nobody can see; called when the worker has ended."""
        self.look_up()
        self._is_closed = True  # first: what ends from now on gives its own memory back
        start = 0
        for hold in sorted(self._holds.copy(), key=lambda hold: hold.start):
            self._section.drop(start, hold.start - start)
            start = hold.start + whole_pages(hold.size)
        self._section.drop(start, self._section.size - start)
        for hold in self._fenced:
            slots_forks.held.discard(hold)

    def _end(self, hold: _Hold) -> None:
        """Called by finalizers: in any thread, and at any moment, so it takes no lock."""
        if os.getpid() != self._owner_pid:
            return  # a forked child drops its view; the slot is not its own to give
        is_fenced = slots_forks.is_fenced(hold.since)
        if is_fenced and not self._is_closed:
            self._fenced.append(hold)
            return
        slots_forks.held.discard(hold)
        self._holds.discard(hold)
        if not self._is_closed:
            self._section.words[hold.slot] = FREE
        elif not is_fenced:
            self._section.drop(hold.start, whole_pages(hold.size))
