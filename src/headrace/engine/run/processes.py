"""Workers that are processes: they run Python in parallel, and can be ended whatever they do."""

from __future__ import annotations

import logging
import multiprocessing
import weakref
from collections.abc import Generator, Iterable
from multiprocessing.context import BaseContext
from typing import Any, ClassVar, TypeVar

from headrace.engine.run import lifetime
from headrace.engine.run.checks import check_numbers
from headrace.engine.run.drive import drive
from headrace.engine.run.pool import Pool, refuse_unguarded_main
from headrace.engine.run.slots import SlotTransport
from headrace.engine.run.transport import Transport
from headrace.errors import ConfigurationError, StuckWorker, nearest
from headrace.protocols import Task

__all__ = ["ProcessRunner"]

OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")

_LOG = logging.getLogger("headrace")


class ProcessRunner:
    """Executes in processes of their own.

    Args:
        num_workers: Processes, at least 1.
        prefetch_factor: Orders that one worker may have in hand or waiting, at least 1; 2 as in PyTorch.
        timeout_s: Seconds to wait for a result before `StuckWorker` is raised; 0 = for ever.
        context: How processes start: `"fork"`, `"forkserver"`, `"spawn"`, or a multiprocessing context. None = what
            the program has set, or else Python's default.
        persistent: Keep the workers of a run that ended well, or was broken off, for the next run with the same task
            object. They keep the task as it was when they started.
        transport: How results travel; None = `SlotTransport()`, in shared memory.

    Raises:
        ConfigurationError: an argument cannot work.

    Cost: two workers that do nothing start in about 0.03 s by fork and 0.5 to 2 s otherwise (imports).
    """

    name: ClassVar[str] = "processes"
    in_one_process: ClassVar[bool] = False

    def __init__(
        self,
        num_workers: int,
        prefetch_factor: int = 2,
        timeout_s: float = 0.0,
        context: str | BaseContext | None = None,
        *,
        persistent: bool = False,
        transport: Transport | None = None,
    ) -> None:
        check_numbers(num_workers, prefetch_factor, timeout_s)
        self.num_workers = num_workers
        self.persistent = persistent
        self._prefetch_factor = prefetch_factor
        self._timeout_s = timeout_s
        self._context = _context(context)
        self._transport = SlotTransport() if transport is None else transport
        # At most one pool. A list, whose pop() and append() are atomic: two threads, or a garbage collection in the
        # middle of either, can never get hold of the same pool.
        self._idle: list[Pool] = []
        # Refers to the list and not to the runner, so that forgetting the runner ends the idle workers.
        self._end = weakref.finalize(self, _end_idle, self._idle)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_workers={self.num_workers}, prefetch_factor={self._prefetch_factor}, "
            f"context={self.start_method!r}, persistent={self.persistent})"
        )

    @property
    def start_method(self) -> str:
        """How processes start: fork, forkserver or spawn."""
        return self._context.get_start_method() or "fork"

    @property
    def max_in_flight(self) -> int:
        """What the workers have in hand or waiting, and the one result that is being handed over."""
        return self.num_workers * self._prefetch_factor + 1

    def run(self, task: Task[OrderT, ResultT], orders: Iterable[OrderT]) -> Generator[ResultT, None, None]:
        """Yields the result of each order, in order.

        Raises:
            ConfigurationError: processes cannot be started here, or not with this task; raised before any is.
        """
        pool = self._hire(task)
        grace_s = lifetime.HASTY_GRACE_S
        is_reusable = False
        failure = None
        try:
            yield from drive(pool, orders, prefetch_factor=self._prefetch_factor, timeout_s=self._timeout_s)
            grace_s, is_reusable = lifetime.PATIENT_GRACE_S, self.persistent
        except GeneratorExit:
            is_reusable = self.persistent  # broken off: leaves like a complete run, only sooner
        except StuckWorker:
            grace_s = 0.0
            raise
        finally:
            if is_reusable:
                self._keep(pool)
            else:
                failure = pool.end(grace_s)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Ends idle workers. May be called twice."""
        _end_idle(self._idle)

    def _hire(self, task: Task[Any, Any]) -> Pool:
        """Returns the idle pool, if it has this very task, or a new one."""
        refuse_unguarded_main(self.start_method)
        if multiprocessing.current_process().daemon:
            raise ConfigurationError(
                "worker processes cannot be started from inside a worker process",
                why="nobody would end them if their parent were killed, so multiprocessing forbids it",
                do='num_workers=0, or runner="threads", for the inner loader',
            )
        try:
            pool = self._idle.pop()
        except IndexError:
            pass
        else:
            if pool.task is task and pool.is_whole:
                return pool
            pool.end(lifetime.HASTY_GRACE_S)
        return Pool(
            task,
            self.num_workers,
            self._context,
            self._transport,
            self.max_in_flight,
            in_one_process=self.in_one_process,
        )

    def _keep(self, pool: Pool) -> None:
        # A garbage collection that finds runner and run together ends the idle workers first, and then closes the run.
        if not self._end.alive:
            pool.end(lifetime.HASTY_GRACE_S)
            return
        pool.abandon_unfinished()
        self._idle.append(pool)
        while len(self._idle) > 1:  # another run has ended meanwhile: the newer pool stays
            self._idle.pop(0).end(lifetime.HASTY_GRACE_S)


def _end_idle(idle: list[Pool]) -> None:
    while idle:
        failure = idle.pop().end(lifetime.PATIENT_GRACE_S)
        if failure is not None:
            _LOG.warning("closing the task in an idle worker failed", exc_info=failure)


def _context(context: str | BaseContext | None) -> BaseContext:
    """The multiprocessing context to use."""
    if isinstance(context, BaseContext):
        return context
    methods = multiprocessing.get_all_start_methods()
    if context is None:
        # Not get_context(None), which would fix the start method of the whole program as a side effect; the first
        # method of the list is the default.
        context = multiprocessing.get_start_method(allow_none=True) or methods[0]
    if not isinstance(context, str) or context not in methods:
        raise ConfigurationError(
            f"processes start by {', '.join(methods)}, not by {context!r}{nearest(str(context), methods)}"
        )
    return multiprocessing.get_context(context)
