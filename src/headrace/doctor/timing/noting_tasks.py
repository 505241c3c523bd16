"""What notes the work of headrace's own loader where it is done: in its workers, and in the loop that takes their batches.

worker:   an order ─ samples (StageClock) ─ collate ─▶ one record in a file of its own ─ encoded ─▶ another
receiver: a message ─ decoded
loop:     a result is there ─ booked, and handed over
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.timing.fetchers import Interposed, interpose
from headrace.doctor.timing.notes import Notes
from headrace.doctor.timing.noting import SENT, TimedStream
from headrace.doctor.timing.stage_clock import READ, SAMPLE, StageClock
from headrace.doctor.timing.tasks import OtherStages, TaskChange, preparation_of

__all__ = ["TaskNoting"]


class TaskNoting(TaskChange):
    """Keeps the account; copied into each worker process, where each thread keeps its own part."""

    def __init__(self, folder: str) -> None:
        """Notes go into `folder`."""
        self.folder = folder
        self._loop_process = os.getpid()
        # Of the loop's process.
        self._delivered: list[tuple[int, int]] = []
        self.num_taken = 0
        self.taken_s = self.taken_cpu_s = 0.0
        self._has_begun = False
        self._key = (0, 0)
        self._there = (0.0, 0.0)
        self._undo = contextlib.ExitStack()
        # Of the process that makes batches.
        self._make_own()

    def _make_own(self) -> None:
        self._local = threading.local()
        self._lock = threading.Lock()
        self._num_inside = 0
        self._interposed: Interposed | None = None
        self._begins_with = SAMPLE
        self._inside = contextlib.ExitStack()
        self._all_notes: list[Notes] = []
        self._workers = set[int | None]()
        self._is_sending_noted = False

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "_loop_process": self._loop_process}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._delivered = []
        self._undo = contextlib.ExitStack()
        self._make_own()

    # Where orders are executed.

    def begin_worker(self, worker: int | None, num_workers: int) -> None:  # noqa: ARG002 - for those who need it
        """Opens the files of this thread."""
        path = f"{self.folder}/{worker or 0}-{os.getpid()}"
        if self._notes is None:  # the loop itself begins anew with each pass
            self._local.notes = Notes()
            self._local.notes.open(path)
            self._all_notes.append(self._local.notes)
            self._workers.add(worker)
        if worker is not None and os.getpid() != self._loop_process and not self._is_sending_noted:
            self._is_sending_noted = True
            sent = os.open(f"{path}.sent", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for kind in _senders():
                kind.encode = _timed_encode(kind.encode, sent)

    def change_task(self, task: Any) -> None:
        """Times what it does."""
        preparation = preparation_of(task)
        if preparation is None:
            task.dataset = _TimedStream(task.dataset, self)
            task.collate = functools.partial(self._join, task.collate)
            self._interposed = Interposed(task.dataset, around=lambda _: self._transforming, decoder=self._decoding)
            return
        source = preparation.plan.source
        plan = preparation.plan
        if plan.stages:
            self._begins_with = READ
            preparation.plan = OtherStages(
                plan, lambda *arguments, **options: self._transforming(plan.apply_stages, arguments, options)
            )
        self._interposed = Interposed(
            getattr(source, "dataset", None), around=lambda _: self._transforming, decoder=self._decoding
        )
        preparation.read_one = functools.partial(self._take, preparation.read_one)
        interpose(preparation, "sample", self._take)
        interpose(preparation, "records", self._take_all)
        interpose(task, "_gather", self._take_all)
        interpose(task, "_join", self._join)

    def around(self, run: Callable[[], Any], task: Any, order: Any) -> Any:
        """Notes one order."""
        notes: Notes = self._local.notes
        notes.clock.begins_with = self._begins_with
        with notes.batch(), self._in_place():
            delivery = run()
        if delivery.sample_ids:
            # What a process reads is one number for all its threads.
            notes.write(_key_of(task, order), len(delivery.sample_ids), tells_bytes=len(self._workers) == 1)
        return delivery

    @contextlib.contextmanager
    def _in_place(self) -> Iterator[None]:
        """Threads of one process share the data set, so what is put in its place stays until the last one leaves."""
        with self._lock:
            self._num_inside += 1
            if self._num_inside == 1 and self._interposed is not None:
                self._inside.enter_context(self._interposed.in_place())
        try:
            yield
        finally:
            with self._lock:
                self._num_inside -= 1
                if not self._num_inside:
                    self._inside.close()

    @property
    def _notes(self) -> Notes | None:
        """Of this thread; None: it makes no batches."""
        return getattr(self._local, "notes", None)

    @property
    def _clock(self) -> StageClock | None:
        return None if self._notes is None else self._notes.clock

    def _transforming(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        clock = self._clock
        return function(*arguments, **options) if clock is None else clock.transforming(function, arguments, options)

    def _decoding(self, original: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        clock = self._clock
        return original(*arguments, **options) if clock is None else clock.decoding(original, arguments, options)

    def _take(self, prepare: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """A sample, or its record where that is all there is to do."""
        clock: StageClock = self._local.notes.clock
        if clock.is_in_sample:
            return prepare(*arguments, **options)
        return clock.preparing(prepare, *arguments, **options)

    def _take_all(self, prepare: Callable[..., Any], order: Any, *arguments: Any) -> Any:
        """All records of an order, or its batch, if they can be read at once; else None, after a moment."""
        clock: StageClock = self._local.notes.clock
        made = clock.preparing(prepare, order, *arguments)
        clock.slowest_s = -1.0
        return made

    def take_next(self, stream: Iterator[Any]) -> Any:
        """One sample of a stream."""
        return self._take(next, stream)

    def _join(self, collate: Callable[[Any], Any], samples: Any) -> Any:
        return self._local.notes.joining(collate, samples)

    # In the loop's process.

    def begin_run(self) -> None:
        """Times what the thread does that receives batches."""
        self._has_begun = True
        self._undo.close()
        for kind in _channels():
            self._undo.callback(setattr, kind, "decode", kind.decode)
            kind.decode = self._timed_decode(kind.decode)

    def _timed_decode(self, decode: Callable[..., Any]) -> Callable[..., Any]:
        def timed(channel: Any, worker: int, parts: Any) -> Any:
            cpu, began = time.thread_time(), time.monotonic()
            result = decode(channel, worker, parts)
            self.taken_s += time.monotonic() - began
            self.taken_cpu_s += time.thread_time() - cpu
            return result

        return timed

    def result(self, task: Any, order: Any, delivery: Any) -> None:
        """It is there; what comes now is booking it."""
        del delivery
        self._key = _key_of(task, order)
        self._there = time.monotonic(), time.thread_time()

    def delivered(self) -> None:
        """The loop has it."""
        now, cpu = time.monotonic(), time.thread_time()
        self._delivered.append(self._key)
        self.num_taken += 1
        self.taken_s += now - self._there[0]
        self.taken_cpu_s += cpu - self._there[1]

    def close(self) -> None:
        """Nothing is timed any more in this process."""
        self._undo.close()
        for notes in self._all_notes:
            notes.close()
        self._make_own()

    @property
    def has_delivered(self) -> bool | None:
        """None: no pass has begun."""
        return bool(self._delivered) if self._has_begun else None

    def delivered_batches(self) -> Iterator[tuple[int, int]]:
        """(Pass, number in it) of each batch that the loop was handed, in order."""
        return iter(self._delivered)


class _TimedStream:
    """Stands for a data set that is a stream."""

    def __init__(self, dataset: Any, noting: TaskNoting) -> None:
        self._dataset, self._noting = dataset, noting

    def __iter__(self) -> Iterator[Any]:
        return TimedStream(iter(self._dataset), self._noting.take_next)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def _key_of(task: Any, order: Any) -> tuple[int, int]:
    """(Pass, number in it) of an order."""
    epochs = getattr(order, "epochs", None)
    return int(task.epoch if epochs is None else epochs[0]), int(order.step)


def _senders() -> tuple[Any, ...]:
    from headrace.engine.run.slots import SlotSender
    from headrace.engine.run.transport import PipeSender

    return SlotSender, PipeSender


def _channels() -> tuple[Any, ...]:
    from headrace.engine.run.slots import SlotChannel
    from headrace.engine.run.transport import PipeChannel

    return SlotChannel, PipeChannel


def _timed_encode(encode: Callable[..., Any], file: int) -> Callable[..., Any]:
    def timed(sender: Any, result: Any) -> Any:
        cpu, began = time.thread_time(), time.monotonic()
        parts = encode(sender, result)
        os.write(file, SENT.pack(time.monotonic() - began, time.thread_time() - cpu))
        return parts

    return timed
