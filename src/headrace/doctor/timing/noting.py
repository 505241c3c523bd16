"""What notes the work of a loader where it is done: in its workers, and in the loop that takes their batches.

worker: fetch ─ samples (StageClock) ─ collate ─ put ──▶ one record in a file of its own
the queue's thread: pickling ──▶ a record
loop:   a batch is there ─ unpickled ─ delivered
"""

from __future__ import annotations

import functools
import multiprocessing.queues
import os
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace.contract.view import flatten
from headrace.doctor.timing.fetchers import Change, Interposed, interpose, rows_of
from headrace.doctor.timing.stage_clock import NUM_STAGES, StageClock, listen_to_opening
from headrace.machine import waited_for_core_s

__all__ = ["MADE", "SENT", "Noting", "ReadBytes"]

MADE = struct.Struct(f"<5q5d{2 * NUM_STAGES}d")
"""Pass, number in the pass, samples, bytes read, requests; began, fetched, made, slowest sample, waited for a core (below 0:
not told); walls and CPUs by stage."""
SENT = struct.Struct("<dd")
"""Wall and CPU seconds of pickling one batch."""


class Noting(Change):
    """Keeps the account; copied into each worker, where it keeps its own part."""

    def __init__(self, folder: str, *, joins: bool, takes_apart: bool, in_order: bool) -> None:
        """Notes what a batch is.

        Args:
            folder: Where the notes go.
            joins: True: the loader joins samples.
            takes_apart: True: a stream yields batches that it has joined itself.
            in_order: True: batches are handed over in the order of their numbers, else as they arrive.
        """
        self.folder, self.joins, self.takes_apart, self.in_order = folder, joins, takes_apart, in_order
        # Of the loop's process.
        self.epoch = -1
        self.num_delivered: list[int] = []
        self.arrived: list[list[int]] = []
        self._is_resetting = False
        self.num_taken = 0
        self.taken_s = self.taken_cpu_s = 0.0
        # Of the process that makes batches.
        self._clock = StageClock()
        self._file: int | None = None
        self._writes_at_once = False
        """Without workers nothing is put."""
        self._io: ReadBytes | None = None
        self._num_here = 0
        self._began_s = self._fetched_s = 0.0
        self._num_samples = 0
        self._read: tuple[int, int] = (0, -1)
        self._late_s = -1.0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "arrived": [], "num_delivered": [], "_clock": StageClock(), "_file": None, "_io": None}

    # In a worker.

    def begin_worker(self, worker: int, queue: Any) -> None:
        """Opens its files, and notes each batch when it is put."""
        self.epoch += 1  # the iterator that is being made is not counted yet
        path = f"{self.folder}/{worker}-{os.getpid()}"
        self._file = os.open(f"{path}.made", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

        def put_and_note(put: Callable[..., Any], item: Any, *arguments: Any, **options: Any) -> Any:
            if _is_batch(item):
                self._write(item[0])
            elif type(item) is tuple and type(item[0]).__name__ == "_ResumeIteration":
                self.epoch += 1
            return put(item, *arguments, **options)

        interpose(queue, "put", put_and_note)
        queues: Any = multiprocessing.queues
        sent = os.open(f"{path}.sent", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        queues._ForkingPickler = _TimedPickler(queues._ForkingPickler, sent)

    def change_fetcher(self, fetcher: Any) -> None:
        """Times what it does."""
        clock = self._clock
        if self._file is None:  # the loop's own process
            path = f"{self.folder}/0-{os.getpid()}.made"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._writes_at_once = True
        if self._io is None:
            self._io = ReadBytes()
        Interposed(fetcher.dataset, around=lambda _: clock.transforming, decoder=clock.decoding).around_fetch(fetcher)
        if hasattr(fetcher, "dataset_iter"):
            fetcher.dataset_iter = _TimedStream(fetcher.dataset_iter, self)
        else:
            fetcher.dataset = rows_of(fetcher.dataset, self._take, self._take_all)
        fetcher.collate_fn = functools.partial(self._join, fetcher.collate_fn)
        interpose(fetcher, "fetch", self._fetch)

    def _fetch(self, fetch: Callable[[Any], Any], index: Any) -> Any:
        self._clock.clear()
        self._num_samples = 0
        io = self._io
        late_s = waited_for_core_s()
        before = None if io is None else io.now()
        listen_to_opening(self._clock)
        self._began_s = self._fetched_s = time.monotonic()
        try:
            batch = fetch(index)
        finally:
            listen_to_opening(None)
        after = None if io is None else io.now()
        self._late_s = -1.0 if late_s is None else max(0.0, (waited_for_core_s() or 0.0) - late_s)
        self._read = (0, -1) if before is None or after is None else (after[0] - before[0], after[1] - before[1])
        if self._writes_at_once:
            self._write(self._num_here)
            self._num_here += 1
        return batch

    def _take(self, index: Any, prepare: Callable[[], Any]) -> Any:
        clock = self._clock
        clock.begin()
        try:
            sample = prepare()
        finally:
            clock.end()
        # A sampler that yields batches to a loader without batching: the index is that of a whole batch.
        self._num_samples += len(index) if not self.joins and isinstance(index, list) else 1
        return sample

    def _take_all(self, indices: Any, prepare: Callable[[], Any]) -> Any:
        clock = self._clock
        clock.begin()
        try:
            samples = prepare()
        finally:
            clock.end()
        if len(indices) > 1:
            clock.slowest_s = -1.0
        self._num_samples += len(indices)
        return samples

    def take_next(self, stream: Iterator[Any]) -> Any:
        """One item of a stream: a sample, or a batch that it has joined itself."""
        clock = self._clock
        clock.begin()
        try:
            item = next(stream)
        finally:
            clock.end()
        self._num_samples += _num_joined(item) if self.takes_apart else 1
        return item

    def _join(self, collate: Callable[[Any], Any], samples: Any) -> Any:
        self._fetched_s = time.monotonic()
        return self._clock.collating(collate, samples)

    def _write(self, number: int) -> None:
        clock = self._clock
        if self._file is None:
            return
        os.write(
            self._file,
            MADE.pack(
                self.epoch,
                number,
                self._num_samples,
                *self._read,
                self._began_s,
                self._fetched_s,
                time.monotonic(),
                clock.slowest_s,
                self._late_s,
                *clock.walls_s,
                *clock.cpus_s,
            ),
        )

    def close(self) -> None:
        """Gives the files of this process back."""
        if self._file is not None:
            os.close(self._file)
        if self._io is not None:
            self._io.close()
        self._file = self._io = None

    # In the loop's process.

    def follow(self, iterator: Any) -> None:
        """Counts what is delivered, and times how it is taken."""
        self._begin_pass()

        def reset_and_count(reset: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            self._begin_pass()
            self._is_resetting = True  # what is left of a pass that was broken off is thrown away
            try:
                return reset(*arguments, **options)
            finally:
                self._is_resetting = False

        def next_and_count(next_data: Callable[[], Any]) -> Any:
            data = next_data()
            self.num_delivered[-1] += 1
            return data

        interpose(iterator, "_reset", reset_and_count)
        interpose(iterator, "_next_data", next_and_count)
        queue = getattr(iterator, "_worker_result_queue", None)
        if queue is not None:
            self._follow_queue(queue)

    @property
    def has_delivered(self) -> bool | None:
        """None: no pass has begun."""
        return any(self.num_delivered) if self.num_delivered else None

    def delivered_batches(self) -> Iterator[tuple[int, int]]:
        """(Pass, number in it) of each batch that the loop was handed, in order."""
        for epoch, num_delivered in enumerate(self.num_delivered):
            numbers = self.arrived[epoch]
            for number in (sorted(numbers) if self.in_order else numbers)[:num_delivered]:
                yield epoch, number

    def _begin_pass(self) -> None:
        self.epoch += 1
        self.num_delivered.append(0)
        self.arrived.append([])

    def _follow_queue(self, queue: Any) -> None:
        poll = queue._poll
        there = [0.0, 0.0]

        def poll_and_note(*arguments: Any, **options: Any) -> Any:
            is_there = poll(*arguments, **options)
            there[:] = time.monotonic(), time.thread_time()
            return is_there

        def get_and_note(get: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            item = get(*arguments, **options)
            now, cpu = time.monotonic(), time.thread_time()
            if not self._is_resetting and _is_batch(item):
                self.arrived[-1].append(item[0])
                self.num_taken += 1
                self.taken_s += now - there[0]
                self.taken_cpu_s += cpu - there[1]
            return item

        queue._poll = poll_and_note  # a method of the queue's pipe, which does not know the queue
        interpose(queue, "get", get_and_note)


def _is_batch(item: Any) -> bool:
    """Of what workers put: numbers come with batches, with failures, and with the news that a stream has ended."""
    return (
        type(item) is tuple
        and len(item) == 2
        and type(item[0]) is int
        and type(item[1]).__name__ not in {"ExceptionWrapper", "_IterableDatasetStopIteration"}
    )


class _TimedStream:
    """Stands for the iterator of a stream."""

    def __init__(self, stream: Iterator[Any], noting: Noting) -> None:
        self._stream, self._noting = stream, noting

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._noting.take_next(self._stream)


def _num_joined(item: Any) -> int:
    """Samples in what a stream yields without being asked to: the length of its first part that has one."""
    for _, value in flatten(item):
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and len(shape):
            return int(shape[0])
    return 1


class _TimedPickler:
    """Stands for what the queue's thread pickles with, in a worker."""

    def __init__(self, pickler: Any, file: int) -> None:
        self._pickler, self._file = pickler, file

    def dumps(self, item: Any, *arguments: Any, **options: Any) -> Any:
        """Pickles, and notes what it took."""
        cpu, began = time.thread_time(), time.monotonic()
        content = self._pickler.dumps(item, *arguments, **options)
        if _is_batch(item):
            os.write(self._file, SENT.pack(time.monotonic() - began, time.thread_time() - cpu))
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pickler, name)


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
