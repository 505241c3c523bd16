"""Walks through a loader with workers and never waits for ever: a worker that hangs or ends is named, then all are ended.

Progress is what the journals say. The loader itself is asked for the next batch with a short timeout, again and again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, Self

from headrace.doctor.lab.bench import Bench
from headrace.doctor.stacks import trim_dump
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.walks.journal import Event, read_journal
from headrace.doctor.walks.observer import Observer

__all__ = ["LoaderWalk", "Pass", "Stop", "patience"]

TICK_S = 0.25
"""How often a loader that has nothing to give is left, to look at the journals."""
START_S = 60.0
"""Workers that are not forked import the user's file first: minutes in bad cases, and no sample is to blame."""
LEAST_PATIENCE_S = 5.0
"""Seconds: longer than a busy machine leaves a process waiting for its turn."""
MAX_ERRORS = 64
"""Batches that may fail before the walk is left."""
DUMP_S = 2.0
JOIN_S = 5.0


def patience(walls_s: Iterable[float]) -> float:
    """Returns the seconds without progress after which a worker is stuck, given what samples took in one process."""
    slowest = max(walls_s, default=0.0)
    return max(LEAST_PATIENCE_S, min(10 * slowest, slowest + 10.0))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A worker that ended, or that did not go on."""

    kind: Literal["died", "stuck"]
    worker: int
    cause: str
    """For `died`, the signal or exit status."""
    stage: str
    """start, worker_init_fn, sample, collate, hand-over: what it was doing."""
    indices: tuple[Any, ...]
    """Indices in hand, as the journal names them."""
    before: tuple[Any, ...]
    """Indices that it had finished before."""
    at: str | None
    stack: str | None
    waited_s: float


@dataclasses.dataclass(slots=True, kw_only=True)
class Pass:
    """One walk from the beginning of the loader to its end, or to where it stopped."""

    outcome: Literal["done", "limit", "stopped", "failed"]
    """limit: it was left when time or samples were used up; failed: the loader did not start."""
    journals: list[list[Event]]
    """By worker."""
    stop: Stop | None = None
    error: str | None = None
    """Why it did not start."""
    wall_s: float = 0.0
    num_delivered: int = 0
    """Samples in the batches that came out."""
    num_errors: int = 0


class LoaderWalk:
    """A loader of the user's, rebuilt with an observer in each worker. Use as a context manager: its processes end."""

    def __init__(
        self,
        loader: Any,
        bench: Bench,
        folder: pathlib.Path,
        *,
        num_workers: int,
        persistent: bool = False,
        user_collate: Callable[[Any], Any] | None = None,
        is_batched: bool,
        reseed: int | None = None,
        **changes: Any,
    ) -> None:
        """Starts nothing yet; arguments as for `rebuild` and `Observer`."""
        folder.mkdir(parents=True, exist_ok=True)
        self._bench, self._folder, self._num_workers = bench, folder, num_workers
        observer = Observer(
            str(folder),
            user_init=getattr(loader, "worker_init_fn", None),
            user_collate=user_collate,
            is_batched=is_batched,
            reseed=reseed,
        )
        self._twin = rebuild(
            loader,
            num_workers=num_workers,
            persistent_workers=persistent,
            worker_init_fn=observer.start,
            collate_fn=observer.join,
            timeout=TICK_S,
            **changes,
        )
        self._persistent = persistent
        self._iterator: Any = None
        self._offsets = [0] * num_workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def walk(self, *, patience_s: float, max_s: float, max_samples: int | None = None) -> Pass:
        """Walks once more: in fresh workers, or in the same ones if they are persistent.

        Args:
            patience_s: Seconds without any progress after which a worker is stuck.
            max_s: Seconds for the walk, from its first batch on; it is left then.
            max_samples: Samples after which it is left.
        """
        started = time.monotonic()
        if not self._persistent:
            self.close()
            for old in self._folder.iterdir():
                old.unlink()
            self._offsets = [0] * self._num_workers
        found = Pass(outcome="done", journals=[])
        try:
            self._begin(patience_s)
        except Exception as error:  # what cannot be pickled, an interpreter that is not to be started, ...
            found.outcome, found.error = "failed", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        else:
            self._go_through(found, patience_s, max_s, max_samples)
        found.wall_s = time.monotonic() - started
        found.journals = self._journals()
        if found.outcome in {"stopped", "failed"} or not self._persistent:
            self.close(by_force=found.outcome == "stopped")
        else:
            self._offsets = [self._size(worker) for worker in range(self._num_workers)]
        return found

    def _begin(self, patience_s: float) -> None:
        loader_class = importlib.import_module("torch.utils.data").DataLoader
        with self._bench.holding(None, None, stage="start of workers"):
            self._bench.stop_listening()
            if self._persistent and self._iterator is not None:
                self._iterator._timeout = patience_s  # workers answer that they are ready; nothing else can be asked
            self._iterator = loader_class.__iter__(self._twin)  # a subclass may do more with batches than walk
            self._iterator._timeout = TICK_S

    def _go_through(self, found: Pass, patience_s: float, max_s: float, max_samples: int | None) -> None:
        progress, since, first = -1, time.monotonic(), 0.0

        def is_enough() -> bool:
            """Asked only when something has gone on: where nothing does, it is worth waiting to know whether it will."""
            is_late = found.num_delivered > 0 and since - first > max_s
            return is_late or (max_samples is not None and found.num_delivered >= max_samples)

        while True:
            try:
                with self._bench.holding(None, None, stage="waiting for workers"):
                    self._bench.stop_listening()
                    number = next(self._iterator)
            except StopIteration:
                return
            except Exception as error:
                text = str(error)
                if text.startswith("DataLoader worker (pid"):
                    found.outcome, found.stop = "stopped", self._dead(time.monotonic() - since)
                    return
                if not text.startswith("DataLoader timed out"):
                    found.num_errors += 1
                    if found.num_errors >= MAX_ERRORS:
                        found.outcome = "limit"
                        return
                    continue
                waited_s, current = time.monotonic() - since, sum(map(self._size, range(self._num_workers)))
                if current == progress:
                    if waited_s > (patience_s if self._all_born() else max(patience_s, START_S)):
                        found.outcome, found.stop = "stopped", self._stuck(waited_s)
                        return
                    continue
                progress = current
            else:
                found.num_delivered += _told_number(number)
                first, progress = first or time.monotonic(), -1
            since = time.monotonic()
            if is_enough():
                found.outcome = "limit"
                return

    # What the journals say.

    def _journals(self) -> list[list[Event]]:
        return [read_journal(self._path(worker), offset=self._offsets[worker]) for worker in range(self._num_workers)]

    def _path(self, worker: int, kind: str = "journal") -> pathlib.Path:
        return self._folder / f"{worker}.{kind}"

    def _size(self, worker: int) -> int:
        with contextlib.suppress(OSError):
            return self._path(worker).stat().st_size
        return 0

    def _all_born(self) -> bool:
        return all(map(self._size, range(self._num_workers)))

    def _dead(self, waited_s: float) -> Stop:
        ended: list[int] = []
        deadline = time.monotonic() + JOIN_S
        while not ended and time.monotonic() < deadline:
            ended = [place for place, one in enumerate(self._iterator._workers) if one.exitcode not in {None, 0}]
            ended = ended or [place for place, one in enumerate(self._iterator._workers) if one.exitcode is not None]
            time.sleep(0.01)
        worker = ended[0] if ended else 0
        code = self._iterator._workers[worker].exitcode
        return self._describe("died", worker, _named_end(code), self._dumped(worker), waited_s)

    def _stuck(self, waited_s: float) -> Stop:
        busy = [worker for worker, events in enumerate(self._journals()) if _in_hand(events)[0] != "waiting"]
        worker = busy[0] if busy else 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._iterator._workers[worker].pid, signal.SIGUSR2)
        deadline, previous = time.monotonic() + DUMP_S, ""
        while time.monotonic() < deadline:
            time.sleep(0.05)
            current = self._dumped(worker)
            if current and current == previous:
                break
            previous = current
        return self._describe("stuck", worker, "", self._dumped(worker), waited_s)

    def _dumped(self, worker: int) -> str:
        try:
            return self._path(worker, "dump").read_text(errors="replace")
        except OSError:
            return ""

    def _describe(self, kind: Literal["died", "stuck"], worker: int, cause: str, dump: str, waited_s: float) -> Stop:
        events = read_journal(self._path(worker), offset=self._offsets[worker])
        stage, indices = _in_hand(events)
        at, stack = trim_dump(dump)
        return Stop(
            kind=kind,
            worker=worker,
            cause=cause,
            stage=stage,
            indices=indices,
            before=tuple(event["index"] for event in events if event["at"] == "end" and event["index"] is not None),
            at=at,
            stack=stack or None,
            waited_s=waited_s,
        )

    # Ending.

    def close(self, *, by_force: bool = False) -> None:
        """Ends the workers and waits until they are gone; by force those that do not hear."""
        iterator, self._iterator = self._iterator, None
        self._twin.__dict__["_iterator"] = None
        if iterator is None:
            return
        if not by_force:
            with contextlib.suppress(Exception), self._bench.holding(None, None, stage="end of workers"):
                self._bench.stop_listening()
                iterator._shutdown_workers()
            return
        # Torch's watch over its workers would raise here for each one that is killed.
        handling = importlib.import_module("torch.utils.data._utils.signal_handling")
        with contextlib.suppress(Exception):
            handling._remove_worker_pids(id(iterator))
        iterator._worker_pids_set, iterator._shutdown = False, True
        for one in iterator._workers:
            one.kill()
        for one in iterator._workers:
            one.join(JOIN_S)
        for queue in [*iterator._index_queues, iterator._worker_result_queue]:
            with contextlib.suppress(Exception):
                queue.cancel_join_thread()
                queue.close()


def _in_hand(events: list[Event]) -> tuple[str, tuple[Any, ...]]:
    """(stage, indices) that a journal ends in; `waiting` if everything that was begun is done and handed over."""
    stage, indices, is_unsent = "start", tuple[Any, ...](), False
    batch: list[Any] = []
    for event in events:
        if event["at"] == "begin":
            stage = event["stage"]
            indices = tuple(batch) if stage == "collate" else tuple(event.get("indices", ()))
        elif event["at"] == "end":
            stage = "waiting"
            batch += [] if event["index"] is None else [event["index"]]
        elif event["at"] in {"batch", "start", "exhausted"}:
            stage, indices, batch = "waiting", (), []
        elif event["at"] == "error":
            # Handed over as an exception. If that cannot be sent, the worker goes on and the loader waits for it.
            stage, is_unsent, batch = "waiting", is_unsent or event["arrives_as"] is None, []
        elif event["at"] == "done" and event["stage"] == "worker_init_fn":
            stage = "start"
    return ("hand-over" if stage == "waiting" and is_unsent else stage), indices


def _named_end(exit_code: int | None) -> str:
    if exit_code is None:
        return "an end without a status"
    if exit_code >= 0:
        return f"exit status {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _told_number(batch: Any) -> int:
    """Samples in a batch, as the observing collate function told; a wrapper may have put the number into a list."""
    if isinstance(batch, int):
        return batch
    return sum(map(_told_number, batch)) if isinstance(batch, (list, tuple)) else 0
