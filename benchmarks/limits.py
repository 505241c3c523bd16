"""The bare loops that loaders are held against: the same kernels, preallocated output, nothing in between."""

from __future__ import annotations

import collections
import itertools
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import numpy as np
from benchmarks.regime import Epochs

SLOTS = 8
"""Batches that may be in work at once, each in its own preallocated arrays."""

Slot = Any
Write = Callable[[Slot, int, int], object]
"""write(slot, row, index): makes sample `index` and puts it into row `row` of the slot."""


def orders(num_samples: int, batch_size: int, num_epochs: int = 8) -> list[list[np.ndarray]]:
    """Returns shuffled rows for some epochs, cut into batches: made before the clock starts, then used in turn."""
    shuffles = [np.random.default_rng(epoch).permutation(num_samples) for epoch in range(num_epochs)]
    return [np.split(rows, range(batch_size, num_samples, batch_size)) for rows in shuffles]


def in_caller(num_samples: int, batch_size: int, fill: Callable[[np.ndarray], Any]) -> Epochs:
    """A bare loop in one thread: fill(rows) makes a batch in place and returns it."""
    ready = orders(num_samples, batch_size)
    return Epochs(lambda epoch: map(fill, ready[epoch % len(ready)]))


def threads(num_threads: int, num_samples: int, batch_size: int, make_slot: Callable[[], Slot], write: Write) -> Epochs:
    """Bare threads that take sample after sample; the caller gets whole batches in order. No batch may be incomplete."""
    assert num_samples % batch_size == 0
    ready = orders(num_samples, batch_size)
    num_slots = max(SLOTS, 4 * num_threads // batch_size)
    slots = [make_slot() for _ in range(num_slots)]
    done: SimpleQueue[int] = SimpleQueue()
    free = threading.Semaphore(num_slots * batch_size)

    def samples() -> Iterator[tuple[int, int, int]]:
        numbers = itertools.count()
        for epoch in itertools.count():
            for rows in ready[epoch % len(ready)]:
                number = next(numbers)
                for row, index in enumerate(rows.tolist()):
                    yield number, row, index

    waiting, lock, stopping = samples(), threading.Lock(), threading.Event()

    def work() -> None:
        while True:
            free.acquire()
            if stopping.is_set():
                return
            with lock:
                number, row, index = next(waiting)
            write(slots[number % num_slots], row, index)
            done.put(number)

    def batches() -> Iterator[Slot]:
        for _ in range(num_threads):
            threading.Thread(target=work, daemon=True).start()
        finished: collections.Counter[int] = collections.Counter()
        sizes = (len(rows) for epoch in itertools.count() for rows in ready[epoch % len(ready)])
        try:
            for number, size in enumerate(sizes):
                while finished[number] < size:
                    finished[done.get()] += 1
                yield slots[number % num_slots]
                del finished[number]
                free.release(size)
        finally:
            stopping.set()
            free.release(num_threads)

    return continued(batches(), len(ready[0]))


def processes(num_processes: int, num_samples: int, batch_size: int, width: int, write: Write) -> Epochs:
    """Bare processes that take batch after batch, into rows of `width` int64 in memory shared since their fork.

    No batch may be incomplete.
    """
    assert num_samples % batch_size == 0
    ready = orders(num_samples, batch_size)
    shape = (num_processes, SLOTS, batch_size, width)
    slots = np.frombuffer(mmap.mmap(-1, 8 * int(np.prod(shape))), np.int64).reshape(shape)

    def work(process: int, done: int, free: int) -> None:
        for turn in itertools.count():
            if not os.read(free, 1):  # the caller has closed its end
                return
            number = turn * num_processes + process
            rows = ready[number // len(ready[0]) % len(ready)][number % len(ready[0])]
            for row, index in enumerate(rows.tolist()):
                write(slots[process, turn % SLOTS], row, index)
            os.write(done, b"x")

    def batches() -> Iterator[np.ndarray]:
        pipes: list[tuple[int, int]] = []
        pids = []
        for process in range(num_processes):
            (done_out, done_in), (free_out, free_in) = os.pipe(), os.pipe()
            pids.append(os.fork())
            if pids[-1] == 0:
                try:
                    os.close(free_in), os.close(done_out)
                    for others in pipes:  # else the caller's closing would go unseen
                        os.close(others[0]), os.close(others[1])
                    work(process, done_in, free_out)
                finally:  # the parent has gone: reading or writing failed
                    os._exit(0)
            os.close(done_in), os.close(free_out)
            os.write(free_in, b"x" * SLOTS)
            pipes.append((done_out, free_in))
        try:
            for number in itertools.count():
                done_out, free_in = pipes[number % num_processes]
                os.read(done_out, 1)
                yield slots[number % num_processes, number // num_processes % SLOTS]
                os.write(free_in, b"x")
        finally:
            for done_out, free_in in pipes:
                os.close(done_out), os.close(free_in)
            for pid in pids:
                os.waitpid(pid, 0)

    return continued(batches(), len(ready[0]))


def continued(batches: Iterator[Any], num_batches: int) -> Epochs:
    """Cuts an endless iterator, which works on over the border of epochs, into epochs."""
    return Epochs(lambda epoch: itertools.islice(batches, num_batches))  # noqa: ARG005
