"""Results in shared memory: a worker copies them into a slot once, and the consumer has views of it.

    worker:    result ──pack──▶ pickle + buffers ──copy──▶ slot          consumer:  slot ──▶ arrays and tensors, views
                                      └───── message: pickle, small buffers, addresses ─────▶ pipe ──────▲

What the worker makes with `batch_memory` is in the slot from the beginning, and not copied (`slots_lending`).

A slot is mapped on both sides and used again and again, so that after the first round no memory is made, cleared or
mapped any more. It comes back when the last view dies; whoever keeps batches keeps their slots. No worker ever waits
for a slot: if none is free, the result goes through the pipe, as with `PipeTransport`.

Who does what: `slots_memory` is the memory, `slots_shelf` the worker's choice of a slot, `slots_holds` the consumer's
books, `slots_forks` the care for children that the consumer forks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing.reduction
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.run import slots_forks
from headrace.engine.run.packing import pack
from headrace.engine.run.slots_holds import Holds
from headrace.engine.run.slots_lending import ALIGNMENT, LentSlot
from headrace.engine.run.slots_memory import MAX_SLOTS, Section, SlotMemory
from headrace.engine.run.slots_shelf import Shelf
from headrace.engine.run.transport import Channel, PipeChannel
from headrace.engine.run.wire import Buffer, Part
from headrace.errors import ConfigurationError

__all__ = ["SlotTransport"]

_MANY = 16  # small buffers of the largest size: together they go into the slot after all
_SMALL = 8  # parts of `least_bytes` below which a single buffer does not go into the slot
_BESIDE, _IN_SLOT, _ALONE = range(3)
"""Where a buffer is: in the joint part of the message, in the slot, or in a part of its own."""
_NO_SLOT = -1
_SPARE = 2  # without a limit: slots per result that can be in flight; the rest is for batches that the user keeps


@dataclasses.dataclass(frozen=True, slots=True)
class SlotTransport:
    """Sends results through slots in shared memory. Cost: one copy, by the worker, or none.

    The arrays and tensors of a result are views of one block: writable, and the block is not used again while any of
    them lives. Fields of less than 16 KiB have memory of their own. A child forked by the consumer shares the memory
    of the batches that are held at that moment: what either writes into them, the other sees.
    """

    memory_limit: int | None = None
    """Bytes of all slots of one pool. None: twice as many slots as results can be in flight, each as large as needed.
    Batches that are kept beyond that are copied through the pipe into memory of their own."""
    least_bytes: int = 1 << 17
    """Results below this go through the pipe: so far that costs the consumer no more than the care for a slot. Single
    buffers below an eighth of it always do, so that a label that is kept does not keep the images of its batch."""

    def __post_init__(self) -> None:
        if self.memory_limit is not None and self.memory_limit <= 0:
            raise ConfigurationError(
                f"memory_limit must be a positive number of bytes or None, not {self.memory_limit!r}"
            )

    def open(self, num_workers: int, max_in_flight: int) -> Channel:
        """Makes the memory of one pool, before its first worker starts."""
        try:
            memory = SlotMemory(num_workers)
        except OSError:  # no such files, or a tight limit on address space: everything goes through the pipe
            return PipeChannel()
        return SlotChannel(self, memory, max_in_flight)


class SlotChannel:
    """The consumer's half of `SlotTransport`."""

    def __init__(self, transport: SlotTransport, memory: SlotMemory, max_in_flight: int) -> None:
        self._transport = transport
        self._memory = memory
        self._max_in_flight = max_in_flight
        self._file = _File(memory.fd)
        self._holds = [Holds(memory.section(worker)) for worker in range(memory.num_workers)]

    def sender(self, worker: int) -> SlotSender:
        """Returns the half of one worker."""
        return SlotSender(self._transport, self._memory, worker, self._max_in_flight, self._file)

    def decode(self, worker: int, parts: Sequence[Part]) -> Any:
        """Returns the result; its large arrays and tensors are views of a slot."""
        layout, pickled, beside, *alone = parts
        (slot, start, size), *places = np.frombuffer(layout, np.int64).reshape(-1, 3).tolist()
        self._holds[worker].look_up()
        block = self._holds[worker].hold(slot, start, size) if slot != _NO_SLOT else beside
        buffers = []
        for kind, begin, end in places:
            memory = beside if kind == _BESIDE else block if kind == _IN_SLOT else alone[begin]
            buffers.append(memory[begin:end] if kind != _ALONE else memory)
        return pickle.loads(pickled, buffers=buffers)

    def close(self) -> None:
        """Gives all memory back, except for results that the consumer still holds."""
        for holds in self._holds:
            holds.close()
        self._holds.clear()
        self._memory.close_file()
        slots_forks.look_up()  # the workers of this pool were such children, if batches of another were held


class _File:
    """The descriptor of the memory on its way into a process; passed once, however many workers live there."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> tuple[Any, ...]:
        # Only while a worker starts (spawn, forkserver): DupFd hands the descriptor over. Under fork it is inherited.
        return _received, (multiprocessing.reduction.DupFd(self.fd),)


def _received(handle: Any) -> _File:
    return _File(handle.detach())


class SlotSender:
    """The worker's half of `SlotTransport`."""

    def __init__(
        self, transport: SlotTransport, memory: SlotMemory, worker: int, max_in_flight: int, file: _File
    ) -> None:
        self._transport = transport
        self._file = file
        self._fd = -1
        self._begin, self._section_bytes = worker * memory.section_bytes, memory.section_bytes
        self._num_workers = memory.num_workers
        self._max_in_flight = max_in_flight
        self._section: Section | None = None
        self._shelf: Shelf | None = None
        self._lent: LentSlot | None = None

    def open(self) -> None:
        """Maps the worker's section."""
        self._fd = os.dup(self._file.fd)  # one of its own: each worker of a process gives its own back
        with contextlib.suppress(OSError):  # a tight limit on address space: everything goes through the pipe
            self._section = Section.attach(self._fd, self._begin, self._section_bytes)
            self._shelf = Shelf(self._section, self._fd, *self._share())
            self._lent = LentSlot(self._section, self._shelf)

    def _share(self) -> tuple[int, int]:
        """How many slots this worker may have, and how many bytes."""
        if self._transport.memory_limit is not None:
            return MAX_SLOTS, self._transport.memory_limit // self._num_workers
        # All results in flight may be this worker's, while the others are busy with slow ones.
        return min(MAX_SLOTS, _SPARE * self._max_in_flight), self._section_bytes

    def lend(self, num_bytes: int) -> npt.NDArray[np.uint8] | None:
        """Returns memory of the slot that the next result will be in; None if it is too small for that, or there is none."""
        if num_bytes < max(1, self._transport.least_bytes // _SMALL) or self._lent is None:
            return None
        return self._lent.lend(num_bytes)

    def take_back(self) -> None:
        """Frees the slot of a result that there will not be."""
        if self._lent is not None:
            self._lent.take_back()

    def encode(self, result: Any) -> Sequence[Buffer]:
        """Returns the message; the large buffers of the result are then in a slot.

        Raises:
            ConfigurationError: as many results of this size as can be in flight do not fit the memory limit.
        """
        pickled, *buffers = pack(result)
        small = self._transport.least_bytes // _SMALL
        if sum(len(buffer) for buffer in buffers if len(buffer) < small) > _MANY * small:
            small = 0  # so many that they are worth a slot
        beside, large = _Block(), _Block()
        for number, buffer in enumerate(buffers):
            (beside if len(buffer) < small else large).add(number, buffer)
        slot, start, size, alone, there = self._lay_out(large)
        places: list[tuple[int, int, int]] = [(_ALONE, 0, 0)] * len(buffers)
        for number, begin, end in beside.places:
            places[number] = (_BESIDE, begin, end)
        for number, begin, end in there:
            places[number] = (_IN_SLOT, begin, end)
        for index, (number, _) in enumerate(alone):
            places[number] = (_ALONE, index, 0)
        layout = np.array([(slot, start, size), *places], np.int64).data.cast("B")
        return [layout, pickled, beside.copy(), *(buffer for _, buffer in alone)]

    def _lay_out(self, large: _Block) -> tuple[int, int, int, list[tuple[int, Buffer]], list[tuple[int, int, int]]]:
        """Brings the large buffers into a slot, if there is one.

        Returns:
            The slot: number, offset and bytes in use; the buffers that are not in it; where in it the others are.
        """
        if large.size < max(1, self._transport.least_bytes):
            self.take_back()  # what was made in a slot is sent from there, before anything else is made
            return _NO_SLOT, 0, 0, list(large.numbered()), []
        self._check_limit(large.size)
        there = None if self._lent is None else _places_in(self._lent, large)
        if there is not None and self._lent is not None:
            size = self._lent.size
            return *self._lent.pass_on(), size, [], there
        taken = None if self._shelf is None else self._shelf.take(large.size)
        if taken is not None and self._section is not None:
            large.copy_into(np.frombuffer(self._section.block(taken[1], large.size), np.uint8).data)
        if self._lent is not None:
            self._lent.expect(large.size)
        self.take_back()  # only now: what was copied may have been made there
        if taken is None:
            return _NO_SLOT, 0, 0, list(large.numbered()), []
        return *taken, large.size, [], large.places

    def _check_limit(self, size: int) -> None:
        """Raises if as many results of this size as can be in flight do not fit the memory limit."""
        limit = self._transport.memory_limit
        if limit is not None and size * self._max_in_flight > limit:
            raise ConfigurationError(
                f"memory_limit={limit:,} bytes does not hold the batches in flight: {self._max_in_flight} "
                f"at once, and this one has {size:,} bytes",
                why="each worker loads batches ahead, and none may wait for memory, or loading could stand still",
                do=(
                    f"memory_limit={size * self._max_in_flight:,} or more, or None",
                    "smaller batches, fewer workers, or a smaller prefetch_factor",
                ),
            )

    def close(self) -> None:
        """Gives mapping and descriptor back."""
        self._section = self._shelf = self._lent = None
        os.close(self._fd)


def _places_in(lent: LentSlot, large: _Block) -> list[tuple[int, int, int]] | None:
    """Returns number, begin and end of each buffer in the slot that parts of the result were made in.

    What was not made there is copied there. None if nothing was, or not all of the rest finds a place.
    """
    found = [(number, buffer, lent.place_of(buffer)) for number, buffer in large.numbered()]
    if all(place is None for _, _, place in found):
        return None
    there = []
    for number, buffer, place in found:
        if place is not None:
            there.append((number, *place))
            continue
        memory = lent.lend(len(buffer))
        if memory is None:
            return None
        memory[:] = np.frombuffer(buffer, np.uint8)
        there.append((number, lent.size - len(buffer), lent.size))
    return there


class _Block:
    """Buffers laid one after another, each aligned."""

    def __init__(self) -> None:
        self.size = 0
        self.buffers: list[Buffer] = []
        self.places: list[tuple[int, int, int]] = []
        """(number, begin, end) of each buffer."""

    def add(self, number: int, buffer: Buffer) -> None:
        begin = -(-self.size // ALIGNMENT) * ALIGNMENT
        self.size = begin + len(buffer)
        self.buffers.append(buffer)
        self.places.append((number, begin, self.size))

    def numbered(self) -> Iterator[tuple[int, Buffer]]:
        """Yields each buffer with its number."""
        return zip((number for number, _, _ in self.places), self.buffers, strict=True)

    def copy_into(self, memory: memoryview | bytearray) -> None:
        for buffer, (_, begin, end) in zip(self.buffers, self.places, strict=True):
            memory[begin:end] = buffer

    def copy(self) -> bytearray:
        memory = bytearray(self.size)
        self.copy_into(memory)
        return memory
