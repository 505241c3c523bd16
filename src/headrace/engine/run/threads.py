"""Workers that are threads: nothing is pickled or copied; they help where user code releases the interpreter lock."""

from __future__ import annotations

import collections
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from headrace.engine.run import lifetime
from headrace.engine.run.carry import stand_in
from headrace.engine.run.checks import check_numbers
from headrace.engine.run.drive import drive
from headrace.engine.run.messages import NO_ORDER, Kind, Message, drain
from headrace.errors import HeadraceError, StuckWorker, Where, WorkerDied
from headrace.protocols import Task

__all__ = ["ThreadRunner"]

OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")

_Work = tuple[int, Any]
"""Number of an order, and the order."""


class _Shelf:
    """Orders that wait: those for any thread, and those for one.

    Its lock is re-entrant, because a garbage collection inside may end this very run.
    """

    def __init__(self, num_workers: int) -> None:
        self._shared: collections.deque[_Work] = collections.deque()
        self._bound: list[collections.deque[_Work]] = [collections.deque() for _ in range(num_workers)]
        self._bell = threading.Condition(threading.RLock())
        self._is_closed = False

    def put(self, work: _Work, worker: int | None = None) -> None:
        with self._bell:
            if worker is None:
                self._shared.append(work)
                self._bell.notify()
            else:
                self._bound[worker].append(work)
                self._bell.notify_all()

    def take(self, worker: int) -> _Work | None:
        """Returns what the worker does next, as soon as there is something; None = nothing any more."""
        with self._bell:
            while not self._is_closed:
                for waiting in (self._bound[worker], self._shared):
                    if waiting:
                        return waiting.popleft()
                self._bell.wait()
        return None

    def close(self) -> None:
        """What waits is not wanted any more."""
        with self._bell:
            self._is_closed = True
            self._bell.notify_all()


class ThreadRunner:
    """Executes in threads of this process.

    Args:
        num_workers: Threads, at least 1.
        prefetch_factor: Orders that one worker may have in hand or waiting, at least 1; 2 as in PyTorch.
        timeout_s: Seconds to wait for a result before `StuckWorker` is raised; 0 = for ever.

    A thread cannot be ended from outside: after an early end the order in hand is finished first, for up to a second;
    a thread that takes longer is left behind, as a daemon that ends when its order does.
    """

    name: ClassVar[str] = "threads"

    def __init__(self, num_workers: int, prefetch_factor: int = 2, timeout_s: float = 0.0) -> None:
        check_numbers(num_workers, prefetch_factor, timeout_s)
        self.num_workers = num_workers
        self._prefetch_factor = prefetch_factor
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"ThreadRunner(num_workers={self.num_workers}, prefetch_factor={self._prefetch_factor})"

    @property
    def max_in_flight(self) -> int:
        """What the workers have in hand or waiting, and the one result that is being handed over."""
        return self.num_workers * self._prefetch_factor + 1

    def run(self, task: Task[OrderT, ResultT], orders: Iterable[OrderT]) -> Generator[ResultT, None, None]:
        """Yields the result of each order, in order."""
        crew = _Threads(task, self.num_workers)
        grace_s = lifetime.HASTY_GRACE_S
        try:
            yield from drive(crew, orders, prefetch_factor=self._prefetch_factor, timeout_s=self._timeout_s)
            grace_s = lifetime.PATIENT_GRACE_S
        except GeneratorExit:
            pass  # broken off: leaves like a complete run, only sooner
        except StuckWorker:
            grace_s = 0.0
            raise
        finally:
            failure = crew.end(grace_s)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Does nothing: threads live no longer than their run."""


class _Threads:
    """The threads of one run."""

    stuck_note = "the thread cannot be ended from outside and is left behind; worker processes can be"

    def __init__(self, task: Task[Any, Any], num_workers: int) -> None:
        self.task = task
        self.num_workers = num_workers
        self.next_seq = 0
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._owner_pid = os.getpid()
        self._shelf = _Shelf(num_workers)
        self._hands = [[NO_ORDER, NO_ORDER] for _ in range(num_workers)]
        # All threads open and close the same object, and nobody writes a data set's `open` with that in mind.
        door = threading.Lock()
        self._threads = [
            threading.Thread(
                target=_live,
                args=(
                    task,
                    worker,
                    num_workers,
                    self._shelf,
                    self.inbox,
                    self._hands[worker],
                    door,
                ),
                name=f"headrace-worker-{worker}",
                daemon=True,  # a thread stuck in user code must not keep the program from ending
            )
            for worker in range(num_workers)
        ]
        lifetime.enrol(self)
        for thread in self._threads:
            thread.start()

    def offer(self, seq: int, order: Any) -> bool:
        self._shelf.put((seq, order))
        return True

    def send(
        self,
        worker: int,
        seq: int,
        order: Any,
        stalled: Callable[[], None],  # noqa: ARG002 - a queue in memory never stalls
    ) -> None:
        self._shelf.put((seq, order), worker)

    def note_started(self, worker: int) -> None:
        pass

    def has_started(self, worker: int) -> bool:  # noqa: ARG002 - a thread runs once `start` has returned
        return True

    def in_hand(self, worker: int) -> tuple[int, int]:
        seq, item = self._hands[worker]
        return seq, item

    def stack(self, worker: int) -> str:
        frame = sys._current_frames().get(self._threads[worker].ident or 0)
        frames = [] if frame is None else traceback.extract_stack(frame)
        own = [i for i, summary in enumerate(frames) if summary.filename == __file__]
        return "".join(traceback.format_list(frames[own[-1] + 1 :] if own else frames)).rstrip()

    def check(self) -> None:
        for worker, thread in enumerate(self._threads):
            if not thread.is_alive():
                self.inbox.put(Message(worker, Kind.ENDED))

    def housemates(self, worker: int) -> Sequence[int]:
        return [worker]

    def crashed(self) -> int | None:
        return None

    def death(self, worker: int, where: Where) -> HeadraceError:
        return WorkerDied(f"worker thread {worker} ended without an answer", where=where)

    def end(self, grace_s: float) -> BaseException | None:
        if os.getpid() != self._owner_pid:
            return None  # a forked child has no such threads, and may have inherited their locks locked
        self._shelf.close()
        deadline = time.monotonic() + grace_s
        for thread in self._threads:
            # A garbage collection inside a worker may be what ends this run; a thread cannot wait for itself.
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        lifetime.strike_off(self)
        return next((message.value for message in drain(self.inbox) if message.kind.is_about_the_task), None)

    def forget(self) -> None:
        pass


def _live(
    task: Task[Any, Any],
    worker: int,
    num_workers: int,
    shelf: _Shelf,
    inbox: queue.SimpleQueue[Message],
    hand: list[int],
    door: threading.Lock,
) -> None:
    """The life of one thread. Has no reference to its crew, which otherwise could never be forgotten."""

    def mark(item: int) -> None:
        hand[1] = item

    try:
        with door:
            task.open(worker, num_workers)
    except BaseException as error:
        inbox.put(Message(worker, Kind.OPEN_FAILED, value=stand_in(error, worker)))
        return
    inbox.put(Message(worker, Kind.OPENED))
    while (given := shelf.take(worker)) is not None:
        seq, order = given
        hand[:] = seq, NO_ORDER
        try:
            message = Message(worker, Kind.RESULT, seq, task.run(order, mark))
        except BaseException as error:
            message = Message(worker, Kind.FAILED, seq, stand_in(error, worker))
        hand[:] = NO_ORDER, NO_ORDER
        inbox.put(message)
        del message, given, order  # while this thread waits, it must not keep a batch alive
    try:
        with door:
            task.close()
    except BaseException as error:
        inbox.put(Message(worker, Kind.CLOSE_FAILED, value=stand_in(error, worker)))
