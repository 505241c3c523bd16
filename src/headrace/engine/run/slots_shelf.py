"""Which slot a result goes into: the worker's choice, within its share of the byte budget."""

from __future__ import annotations

import dataclasses

from headrace.engine.run.slots_memory import FREE, MAX_SLOTS, TAKEN, Section, whole_pages

__all__ = ["Shelf"]

_STEPS = 8  # sizes per doubling: batches of varying size meet again, and little is wasted


@dataclasses.dataclass(slots=True)
class _Slot:
    start: int
    capacity: int


class Shelf:
    """The slots of one worker.

    Args:
        section: Where they lie.
        fd: The file of the section.
        max_slots: How many there may be.
        max_bytes: How large they may be together.
    """

    def __init__(self, section: Section, fd: int, max_slots: int, max_bytes: int) -> None:
        self._section = section
        self._fd = fd
        self._max_slots = min(max_slots, MAX_SLOTS)
        self._max_bytes = max_bytes
        self._slots: list[_Slot] = []
        self._end = section.first_slot

    def take(self, size: int) -> tuple[int, int] | None:
        """Returns number and offset of a slot for so many bytes, which is then taken; None if there cannot be one now.

        The consumer frees it, by its word. Never waits: the consumer may keep its batches for ever.
        """
        free = [number for number in range(len(self._slots)) if self._section.words[number] == FREE]
        fitting = [number for number in free if self._slots[number].capacity >= size]
        # The least that is large enough; among equals the first, so that few are in use and those are warm.
        number = min(fitting, key=lambda n: self._slots[n].capacity) if fitting else self._lay(size, free)
        if number is None:
            return None
        self._section.words[number] = TAKEN
        return number, self._slots[number].start

    def give_back(self, number: int) -> None:
        """Frees a slot that was taken, and whose bytes were not sent."""
        self._section.words[number] = FREE

    def _lay(self, size: int, free: list[int]) -> int | None:
        """Makes a new slot, in the place of free ones that are too small if there are any; they give up their bytes."""
        used = sum(slot.capacity for slot in self._slots)
        given_up: list[int] = []
        while free and (not given_up or used + size > self._max_bytes):
            given_up.append(free.pop())
            used -= self._slots[given_up[-1]].capacity
        room = min(self._max_bytes - used, self._section.size - self._end)
        capacity = min(_rounded(size), room // whole_pages(1) * whole_pages(1))
        if capacity < size or (not given_up and len(self._slots) == self._max_slots):
            return None
        for number in given_up:
            self._section.drop(self._slots[number].start, self._slots[number].capacity)
            self._slots[number].capacity = 0
        if not self._section.provide(self._fd, self._end, capacity):
            return None
        if not given_up:
            given_up.append(len(self._slots))
            self._slots.append(_Slot(0, 0))
        self._slots[given_up[0]] = _Slot(self._end, capacity)
        self._end += capacity
        return given_up[0]


def _rounded(size: int) -> int:
    """Rounds up to whole pages, and to one of few sizes."""
    step = max(1 << (size.bit_length() - 1), _STEPS) // _STEPS
    return whole_pages(-(-size // step) * step)
