"""The consumer's loop, the same for threads and processes: keep the workers fed, hand over results in order.

Everything here happens in the thread that asks for results. In particular the iterator of orders is advanced nowhere
else: it is the caller's generator, and a generator that two threads advance breaks.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import queue
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from headrace.engine.run.messages import NO_ORDER, Kind, Message, drain
from headrace.engine.run.window import Window
from headrace.errors import HeadraceError, StuckWorker, Where
from headrace.protocols import Task

__all__ = ["Crew", "drive"]

OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")

SILENCE_S = 300.0
"""Without a timeout: seconds of waiting after which the workers' stacks are logged, once. Long enough for a slow read
from a cold object store, short enough that someone who looks at a standing job finds the reason in its log."""
START_UP_S = 60.0
"""Seconds that a process may take to start, even if the timeout is shorter: an import of torch on a busy machine."""
_TICK_S = 1.0  # how often a waiting consumer looks at the clock and at the processes

_LOG = logging.getLogger("headrace")


class Crew(Protocol):
    """Workers as the drive sees them: threads or processes."""

    task: Task[Any, Any]
    num_workers: int
    next_seq: int
    """Number for the first order of the next run."""
    inbox: queue.SimpleQueue[Message]

    @property
    def stuck_note(self) -> str | None:
        """What becomes of a stuck worker, if it cannot be ended."""
        ...

    def offer(self, seq: int, order: Any) -> bool:
        """Lays an order out for whichever worker is free first; False if it has to be sent to one of them."""
        ...

    def send(self, worker: int, seq: int, order: Any, stalled: Callable[[], None]) -> None:
        """Gives an order to a worker; calls `stalled` now and then while it cannot."""
        ...

    def note_started(self, worker: int) -> None:
        """Records that a worker runs."""
        ...

    def has_started(self, worker: int) -> bool:
        """Returns True once a worker runs."""
        ...

    def in_hand(self, worker: int) -> tuple[int, int]:
        """Returns the number of the order that a worker has in hand, and the item marked in it; NO_ORDER for none."""
        ...

    def stack(self, worker: int) -> str:
        """Returns where a worker stands; empty if it cannot say."""
        ...

    def check(self) -> None:
        """Puts a message into the inbox for every worker that has died unnoticed."""
        ...

    def housemates(self, worker: int) -> Sequence[int]:
        """Returns the workers that live and die with this one, itself included."""
        ...

    def crashed(self) -> int | None:
        """Returns the worker in which native code crashed; None if that is not known."""
        ...

    def death(self, worker: int, where: Where) -> HeadraceError:
        """Returns the error for a worker that has ended."""
        ...


def drive(
    crew: Crew, orders: Iterable[OrderT], *, prefetch_factor: int, timeout_s: float
) -> Generator[Any, None, None]:
    """Yields the result of each order, in order.

    Raises:
        Exception: what a task, or the iterator of orders, raised, after the results that come before it.
        WorkerDied: a worker ended without an answer.
        StuckWorker: the next result did not come within `timeout_s` seconds; 0 = wait for ever.
    """
    return _Drive(crew, orders, prefetch_factor, timeout_s).results()


class _Drive(Generic[OrderT]):
    def __init__(self, crew: Crew, orders: Iterable[OrderT], prefetch_factor: int, timeout_s: float) -> None:
        self._crew = crew
        self._orders: Iterator[OrderT] | None = iter(orders)
        self._held: list[OrderT] = []  # an order that was taken, but whose worker has its hands full
        self._window: Window[OrderT] = Window(crew.num_workers, prefetch_factor, crew.next_seq)
        self._timeout_s = timeout_s
        self._shares = True
        """False once an order was pinned. Workers look first at what lies out for anybody; they could do that for ever
        while one of them owes its own order, for which all wait."""
        self._lost: set[int] = set()
        self._has_warned = False
        self._since = 0.0

    def results(self) -> Generator[Any, None, None]:
        self._fill()
        while not self._window.is_empty:
            self._wait()
            message = self._window.pop()
            if message.kind is Kind.FAILED:
                raise message.value
            # Before handing over, not after: the workers go on while the consumer is busy with this result, even if
            # there is one worker with one order.
            self._fill()
            yield message.value
            del message  # the consumer's memory, not ours, while we wait for the next one

    def _fill(self) -> None:
        """Takes orders while there is room, and sends each on its way."""
        while self._window.has_room:
            if not self._held and not self._take():
                return
            (order,) = self._held
            pin = self._crew.task.pinned_to(order)
            if not self._window.can_take(pin):
                return
            self._shares = self._shares and pin is None
            seq = self._window.end_seq
            # The number is never given twice, even if this run is abandoned now and the crew goes on with another.
            self._crew.next_seq = seq + 1
            if self._shares and self._crew.offer(seq, order):
                worker = None
            elif self._shares and self._window.has_unbound:
                return  # no place among those; the next answer makes some
            else:
                worker = self._window.least_bound() if pin is None else pin
            self._held.clear()
            self._window.take(order, worker)
            if worker is not None:
                self._crew.send(worker, seq, order, functools.partial(self._look_up, worker, time.monotonic()))

    def _take(self) -> bool:
        """Takes one order; False if there is none."""
        if self._orders is None:
            return False
        try:
            self._held.append(next(self._orders))
        except StopIteration:
            self._orders = None
            return False
        except Exception as error:
            # A plain loop would have delivered everything before this order first.
            self._orders = None
            self._window.refuse(error)
            return False
        return True

    def _stop_taking(self) -> None:
        """The run will end with an error that is known already: what comes behind it need not be begun."""
        self._orders = None
        self._held.clear()

    def _wait(self) -> None:
        """Returns when the next result is here."""
        self._since = time.monotonic()
        while not self._window.is_ready:
            try:
                message = self._crew.inbox.get(timeout=self._tick_s())
            except queue.Empty:
                self._crew.check()
            else:
                self._hear(message)
                self._fill()  # an order that was held back may find its worker free now
            if not self._window.is_ready:
                self._look(None, self._since)

    def _hear(self, message: Message) -> None:
        match message.kind:
            case Kind.STARTED | Kind.OPENED:
                self._crew.note_started(message.worker)
                # Starting and opening are not the sample's fault: its own time begins afterwards.
                if not self._window.is_empty and self._holder() in {None, message.worker}:
                    self._since = time.monotonic()
            case Kind.RESULT | Kind.FAILED:
                # An order of an abandoned run, which nobody waits for, may fail without any harm to this one.
                if self._window.answer(message) and message.kind is Kind.FAILED:
                    self._stop_taking()
            case Kind.OPEN_FAILED:
                raise message.value
            case Kind.ENDED:
                if message.worker not in self._lost:  # the pipe's end and `check` may both report it
                    self._lose(message.worker)
            case _:
                pass

    def _lose(self, worker: int) -> None:
        """Puts the death of a worker in the place of the result that it owes next."""
        self._lost.add(worker)
        mates = self._crew.housemates(worker)
        if not self._lost.issuperset(mates):
            return  # they died together; what each still had to say comes first
        if len(mates) > 1:
            # Of those who may be to blame, if it is not known, the one with the oldest order in hand.
            crashed = self._crew.crashed()
            worker = self._longest_busy(mates) if crashed is None else crashed
        error = self._crew.death(worker, self._where(worker))
        # With the last worker gone, nobody will answer the oldest order, whoever had it.
        is_last = len(self._lost) == self._crew.num_workers
        seq = next(iter(self._window.unanswered), NO_ORDER) if is_last else self._owed(worker)
        if seq == NO_ORDER or not self._crew.has_started(worker):
            raise error
        self._stop_taking()
        self._window.answer(Message(worker, Kind.FAILED, seq, error))

    def _seq_in_hand(self, worker: int) -> int:
        """Number of the order that a worker has in hand; NO_ORDER between two, or while it is of an abandoned run."""
        seq, _ = self._crew.in_hand(worker)
        return seq if seq in self._window.unanswered else NO_ORDER

    def _owed(self, worker: int) -> int:
        """Number of the order whose result a worker owes next; NO_ORDER for none."""
        seq = self._seq_in_hand(worker)
        return next(iter(self._window.bound_to(worker)), NO_ORDER) if seq == NO_ORDER else seq

    def _where(self, worker: int) -> Where:
        """Names what a worker has in hand."""
        seq, item = self._crew.in_hand(worker)
        if seq not in self._window.unanswered:
            seq, item = self._owed(worker), NO_ORDER
        where = Where()
        if seq != NO_ORDER:
            order = self._window.unanswered[seq]
            where = self._crew.task.where(order, None if item == NO_ORDER else item)
        return dataclasses.replace(where, worker=worker)

    def _holder(self) -> int | None:
        """Worker that has in hand the order whose result leaves next; None if nobody has begun it."""
        seq = self._window.next_seq
        for worker in range(self._crew.num_workers):
            if self._crew.in_hand(worker)[0] == seq:
                return worker
        return None

    def _awaited(self) -> int:
        """Worker that keeps us waiting: who has the next order in hand or bound to it, else who is busy longest."""
        holder = self._holder()
        if holder is not None:
            return holder
        workers = range(self._crew.num_workers)
        seq = self._window.next_seq
        bound = next((w for w in workers if seq in self._window.bound_to(w)), None)
        if bound is not None:
            return bound
        return self._longest_busy(workers)

    def _longest_busy(self, workers: Sequence[int]) -> int:
        """Worker with the oldest order in hand."""
        return min(workers, key=lambda w: (self._seq_in_hand(w) == NO_ORDER, self._seq_in_hand(w)))

    # ---- patience ---------------------------------------------------------------------------------------------------

    def _limit_s(self, worker: int | None) -> float:
        """Seconds to wait for a worker; None = for the awaited one."""
        if not self._timeout_s:
            return SILENCE_S
        has_started = self._crew.has_started(self._awaited() if worker is None else worker)
        return self._timeout_s if has_started else max(self._timeout_s, START_UP_S)

    def _tick_s(self) -> float:
        left_s = self._since + self._limit_s(None) - time.monotonic()
        return min(max(left_s, 0.0), _TICK_S) if not self._has_warned else _TICK_S

    def _look_up(self, worker: int, since: float) -> None:
        """Called now and then while `worker` does not take an order: hears what was said meanwhile, then looks."""
        for message in drain(self._crew.inbox):
            self._hear(message)
        self._look(worker, since)

    def _look(self, worker: int | None, since: float) -> None:
        """Looks at the clock: raises if `worker` (None: the awaited one) took too long, or logs where all stand."""
        waited_s = time.monotonic() - since
        if self._has_warned or waited_s < self._limit_s(worker):
            return
        worker = self._awaited() if worker is None else worker
        if self._timeout_s:
            raise self._stuck(worker, waited_s)
        self._has_warned = True
        stacks = [f"worker {w}, {self._where(w)}\n{self._crew.stack(w)}" for w in range(self._crew.num_workers)]
        _LOG.warning(
            "no result from worker %d for %.0f s; still waiting, because no timeout is set. The workers stand here:\n%s",
            worker,
            waited_s,
            "\n".join(stacks),
        )

    def _stuck(self, worker: int, waited_s: float) -> StuckWorker:
        where = self._where(worker)
        stack = self._crew.stack(worker)
        shown = "".join(f"\n           {line}" for line in stack.splitlines()) if stack else " (it did not answer)"
        fixes = [where.replay, f"timeout={4 * self._timeout_s:g}    # if one batch may well take that long"]
        error = StuckWorker(
            f"no result from worker {worker} for {waited_s:.1f} s; the timeout is {self._timeout_s:g} s",
            where=where,
            why=f"it stands here:{shown}",
            do=[fix for fix in (*fixes, self._crew.stuck_note) if fix],
        )
        error.stack = stack  # type: ignore[attr-defined] # a plain value for programs; errors hold their fields in __dict__
        return error
