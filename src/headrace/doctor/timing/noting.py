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
from headrace.doctor.timing.notes import Notes

__all__ = ["SENT", "Noting", "TimedStream"]

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
        self._notes = Notes()
        self._writes_at_once = False
        """Without workers nothing is put."""
        self._num_here = self._num_samples = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "arrived": [], "num_delivered": [], "_notes": Notes()}

    # In a worker.

    def begin_worker(self, worker: int, queue: Any) -> None:
        """Opens its files, and notes each batch when it is put."""
        self.epoch += 1  # the iterator that is being made is not counted yet
        path = f"{self.folder}/{worker}-{os.getpid()}"
        self._notes.open(path)

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
        clock = self._notes.clock
        if not self._notes.is_open:  # the loop's own process
            self._notes.open(f"{self.folder}/0-{os.getpid()}")
            self._writes_at_once = True
        Interposed(fetcher.dataset, around=lambda _: clock.transforming, decoder=clock.decoding).around_fetch(fetcher)
        if hasattr(fetcher, "dataset_iter"):
            fetcher.dataset_iter = TimedStream(fetcher.dataset_iter, self.take_next)
        else:
            fetcher.dataset = rows_of(fetcher.dataset, self._take, self._take_all)
        fetcher.collate_fn = functools.partial(self._join, fetcher.collate_fn)
        interpose(fetcher, "fetch", self._fetch)

    def _fetch(self, fetch: Callable[[Any], Any], index: Any) -> Any:
        self._num_samples = 0
        with self._notes.batch():
            batch = fetch(index)
        if self._writes_at_once:
            self._write(self._num_here)
            self._num_here += 1
        return batch

    def _take(self, index: Any, prepare: Callable[[], Any]) -> Any:
        sample = self._notes.clock.preparing(prepare)
        # A sampler that yields batches to a loader without batching: the index is that of a whole batch.
        self._num_samples += len(index) if not self.joins and isinstance(index, list) else 1
        return sample

    def _take_all(self, indices: Any, prepare: Callable[[], Any]) -> Any:
        clock = self._notes.clock
        samples = clock.preparing(prepare)
        if len(indices) > 1:
            clock.slowest_s = -1.0
        self._num_samples += len(indices)
        return samples

    def take_next(self, stream: Iterator[Any]) -> Any:
        """One item of a stream: a sample, or a batch that it has joined itself."""
        item = self._notes.clock.preparing(next, stream)
        self._num_samples += _num_joined(item) if self.takes_apart else 1
        return item

    def _join(self, collate: Callable[[Any], Any], samples: Any) -> Any:
        return self._notes.joining(collate, samples)

    def _write(self, number: int) -> None:
        self._notes.write((self.epoch, number), self._num_samples)

    def close(self) -> None:
        """Gives the files of this process back."""
        self._notes.close()

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


class TimedStream:
    """Stands for the iterator of a stream."""

    def __init__(self, stream: Iterator[Any], take_next: Callable[[Iterator[Any]], Any]) -> None:
        self._stream, self._take_next = stream, take_next

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._take_next(self._stream)


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
