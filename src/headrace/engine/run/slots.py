"""Results in shared memory: a worker copies them into a slot once, and the consumer has views of it.

    worker:    result ──pack──▶ pickle + buffers ──copy──▶ slot          consumer:  slot ──▶ arrays and tensors, views
                                      └───── message: pickle, small buffers, addresses ─────▶ pipe ──────▲

A slot is mapped on both sides and used again and again, so that after the first round no memory is made, cleared or
mapped any more. It comes back when the last view dies; whoever keeps batches keeps their slots. No worker ever waits
for a slot: if none is free, the result goes through the pipe, as with `PipeTransport`.

Who does what: `slots_memory` is the memory, `slots_shelf` the worker's choice of a slot, `slots_holds` the consumer's
books, `slots_forks` the care for children that the consumer forks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import multiprocessing.reduction
import os
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.engine.run import slots_forks
from headrace.engine.run.packing import pack
from headrace.engine.run.slots_holds import Holds
from headrace.engine.run.slots_memory import MAX_SLOTS, Section, SlotMemory
from headrace.engine.run.slots_shelf import Shelf
from headrace.engine.run.transport import Channel, PipeChannel
from headrace.engine.run.wire import Buffer, Part
from headrace.errors import ConfigurationError

__all__ = ["SlotTransport"]

_ALIGNMENT = 64  # a cache line, and the widest vector register
_MANY = 16  # small buffers of the largest size: together they go into the slot after all
_SMALL = 8  # parts of `least_bytes` below which a single buffer does not go into the slot
_BESIDE, _IN_SLOT, _ALONE = range(3)
"""Where a buffer is: in the joint part of the message, in the slot, or in a part of its own."""
_NO_SLOT = -1
_SPARE = 2  # without a limit: slots per result that can be in flight; the rest is for batches that the user keeps


@dataclasses.dataclass(frozen=True, slots=True)
class SlotTransport:
    """Sends results through slots in shared memory. Cost: one copy, by the worker.

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
        self._holds = [Holds(memory.section(worker)) for worker in range(memory.num_workers)]

    def sender(self, worker: int) -> SlotSender:
        """Returns the half of one worker."""
        return SlotSender(self._transport, self._memory, worker, self._max_in_flight)

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


class SlotSender:
    """The worker's half of `SlotTransport`."""

    def __init__(self, transport: SlotTransport, memory: SlotMemory, worker: int, max_in_flight: int) -> None:
        self._transport = transport
        self._fd: Any = memory.fd
        self._begin, self._section_bytes = worker * memory.section_bytes, memory.section_bytes
        self._num_workers = memory.num_workers
        self._max_in_flight = max_in_flight
        self._section: Section | None = None
        self._shelf: Shelf | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Only while a worker starts (spawn, forkserver): DupFd hands the descriptor over. Under fork it is inherited.
        return {**self.__dict__, "_fd": multiprocessing.reduction.DupFd(self._fd)}

    def open(self) -> None:
        """Maps the worker's section."""
        if not isinstance(self._fd, int):
            self._fd = self._fd.detach()
        with contextlib.suppress(OSError):  # a tight limit on address space: everything goes through the pipe
            self._section = Section.attach(self._fd, self._begin, self._section_bytes)
            self._shelf = Shelf(self._section, self._fd, *self._share())

    def _share(self) -> tuple[int, int]:
        """How many slots this worker may have, and how many bytes."""
        if self._transport.memory_limit is not None:
            return MAX_SLOTS, self._transport.memory_limit // self._num_workers
        # In flight at once: what this worker may hold ready, and the one that is being handed over.
        num_ready = math.ceil((self._max_in_flight - 1) / self._num_workers)
        return _SPARE * (num_ready + 1), self._section_bytes

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
        slot, start = self._take(large.size)
        message: list[Buffer] = [pickled, beside.copy()]
        places: list[tuple[int, int, int]] = [(_ALONE, 0, 0)] * len(buffers)
        for number, begin, end in beside.places:
            places[number] = (_BESIDE, begin, end)
        for index, (number, begin, end) in enumerate(large.places):
            places[number] = (_IN_SLOT, begin, end) if slot != _NO_SLOT else (_ALONE, index, 0)
        if slot == _NO_SLOT:
            message += large.buffers
        elif self._section is not None:
            large.copy_into(np.frombuffer(self._section.block(start, large.size), np.uint8).data)
        return [np.array([(slot, start, large.size), *places], np.int64).data.cast("B"), *message]

    def _take(self, size: int) -> tuple[int, int]:
        """Returns number and offset of a slot, or _NO_SLOT if there is none, or no need of one."""
        limit = self._transport.memory_limit
        if size < max(1, self._transport.least_bytes) or self._shelf is None:
            return _NO_SLOT, 0
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
        return self._shelf.take(size) or (_NO_SLOT, 0)

    def close(self) -> None:
        """Gives mapping and descriptor back."""
        self._section = self._shelf = None
        os.close(self._fd)


class _Block:
    """Buffers laid one after another, each aligned."""

    def __init__(self) -> None:
        self.size = 0
        self.buffers: list[Buffer] = []
        self.places: list[tuple[int, int, int]] = []
        """(number, begin, end) of each buffer."""

    def add(self, number: int, buffer: Buffer) -> None:
        begin = -(-self.size // _ALIGNMENT) * _ALIGNMENT
        self.size = begin + len(buffer)
        self.buffers.append(buffer)
        self.places.append((number, begin, self.size))

    def copy_into(self, memory: memoryview | bytearray) -> None:
        for buffer, (_, begin, end) in zip(self.buffers, self.places, strict=True):
            memory[begin:end] = buffer

    def copy(self) -> bytearray:
        memory = bytearray(self.size)
        self.copy_into(memory)
        return memory
