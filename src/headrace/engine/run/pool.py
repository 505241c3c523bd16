"""W workers in processes of their own: started together, driven through one pipe each, ended together.

Threads and processes of one pool:

    consumer's thread ──orders──▶ shared orders, or wire 0..W-1 ──▶ W worker processes, or one with W threads
           ▲                                                             │ results
           └──── inbox ◀── receiving thread ◀────────── wire 0..W-1 ◀────┘

No lock of ours is held across a fork or a garbage collection, because there is none on this way: the inbox is a
SimpleQueue, whose `put` may even be interrupted by a collection that itself ends another pool.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.resource_tracker
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from headrace.engine.run import lifetime
from headrace.engine.run.board import Board
from headrace.engine.run.deaths import UNGUARDED_STATUS, death_error, unguarded_error
from headrace.engine.run.fork_server import ensure_server
from headrace.engine.run.messages import Kind, Message, drain
from headrace.engine.run.packing import pack
from headrace.engine.run.parcel import Parcel
from headrace.engine.run.receive import receive
from headrace.engine.run.shared_orders import SharedOrders
from headrace.engine.run.transport import Transport
from headrace.engine.run.wire import Wire
from headrace.engine.run.worker import ORDER_HEAD, Seat, serve
from headrace.errors import HeadraceError, Where
from headrace.protocols import Task

__all__ = ["Pool", "refuse_unguarded_main"]

_WORKER_NAME = "headrace-worker"
_KILL_AFTER_S = 0.5  # from SIGTERM, whose default action ends a process at once, to SIGKILL
_EXIT_S = 5.0  # for a process whose pipe has ended to become waitable

# Starting is done by one pool at a time: between socketpair() and the closing of the worker's end, a worker forked by
# another thread would inherit that end, and the death of the right worker would go unnoticed while the wrong one lives.
_start_lock = threading.Lock()


def _renew_start_lock() -> None:
    global _start_lock  # a forked child may have inherited it locked by a thread that does not exist there
    _start_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_start_lock)


class Pool:
    """The worker processes of one run, or of several runs of the same task one after another.

    Args:
        task: What the workers execute; inherited or pickled at this moment, so later changes do not reach them.
        num_workers: W >= 1.
        context: The start method, as multiprocessing's context.
        transport: How results travel.
        max_in_flight: Results that can exist at once.
        in_one_process: All workers are threads of one process; else each is a process.

    Raises:
        ConfigurationError: the task cannot be pickled; no worker was started.
    """

    stuck_note = None

    def __init__(
        self,
        task: Task[Any, Any],
        num_workers: int,
        context: BaseContext,
        transport: Transport,
        max_in_flight: int,
        *,
        in_one_process: bool = False,
    ) -> None:
        self.task = task
        self.num_workers = num_workers
        self.next_seq = 0
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._method = context.get_start_method() or "fork"
        self._owner_pid = os.getpid()
        self._has_ended = False
        self._has_hung_up = [False] * num_workers
        self._started: set[int] = set()
        alone = [[worker] for worker in range(num_workers)]
        self._houses: Sequence[Sequence[int]] = [range(num_workers)] if in_one_process else alone
        self._processes: list[BaseProcess] = []  # one for each house
        self._wires: list[Wire] = []
        self._shared = SharedOrders()
        self._board = Board(num_workers)
        self._board.clear()
        try:
            self._channel = transport.open(num_workers, max_in_flight)
        except BaseException:
            self._board.close()
            self._shared.close()
            raise
        self._receiver = threading.Thread(
            target=receive,
            args=(self._wires, self.inbox, self._channel, self._has_hung_up),
            name="headrace-receiver",
            daemon=True,
        )
        lifetime.enrol(self)
        try:
            parcel = Parcel(task, method=self._method)
            for workers in self._houses:
                self._start(workers, context, parcel)
            self._shared.hand_over()
            # After the workers: so the first pool of a program forks while there is no other thread.
            self._receiver.start()
        except BaseException:
            self.end(0.0)
            raise

    def _start(self, workers: Sequence[int], context: BaseContext, parcel: Parcel) -> None:
        if self._method != "fork":
            # Both start as processes of their own. Here, and not inside the block below, so that they do not inherit a
            # blocked SIGINT (and because the tracker's start unblocks it).
            multiprocessing.resource_tracker.ensure_running()
            if self._method == "forkserver":
                ensure_server([serve.__module__, type(self.task).__module__])
        with _start_lock, _interrupts_deferred(), contextlib.ExitStack() as ends:
            seats = []
            for worker in workers:
                ours, theirs = socket.socketpair()
                self._wires.append(Wire(ours))
                seats.append(Seat(worker, ends.enter_context(theirs), self._channel.sender(worker)))
            # Daemonic, like PyTorch's: multiprocessing then ends it at the exit of the interpreter, should everything
            # else fail, and refuses it children, which nobody would end if it were killed.
            process = context.Process(  # type: ignore[attr-defined] # every concrete context has it
                target=serve,
                args=(seats, self.num_workers, self._board, parcel, self._shared.workers_end),
                name=f"{_WORKER_NAME}-{workers[0]}",
                daemon=True,
            )
            process.start()
            self._processes.append(process)

    def _process(self, worker: int) -> BaseProcess:
        """The process in which a worker lives."""
        return self._processes[0 if len(self._processes) == 1 else worker]

    # ---- what the drive needs ---------------------------------------------------------------------------------------

    def offer(self, seq: int, order: Any) -> bool:
        """Lays an order out for whichever worker is free first; False if it has to be sent to one of them."""
        return self._shared.offer([ORDER_HEAD.pack(seq), *pack(order)])

    def send(self, worker: int, seq: int, order: Any, stalled: Callable[[], None]) -> None:
        """Gives an order to a worker; calls `stalled` every second while the worker does not take it."""
        parts = [ORDER_HEAD.pack(seq), *pack(order)]
        # A worker that is dead cannot take it; the receiving thread sees the same and reports it in the inbox.
        with contextlib.suppress(OSError):
            self._wires[worker].send(parts, stalled)

    def note_started(self, worker: int) -> None:
        """Records that a worker's interpreter is up."""
        self._started.add(worker)

    def has_started(self, worker: int) -> bool:
        """Returns True once a worker's interpreter is up."""
        return worker in self._started

    def in_hand(self, worker: int) -> tuple[int, int]:
        """Returns the number of the order that a worker has in hand, and the item marked in it."""
        return self._board.in_hand(worker)

    def stack(self, worker: int) -> str:
        """Returns where a worker stands; empty if it cannot say."""
        process = self._process(worker)
        # Before its first message a worker has no handler, and the signal would end it.
        if process.pid is None or not self.has_started(worker) or not process.is_alive():
            return ""
        return self._board.ask_stack(process.pid, worker if len(self.housemates(worker)) > 1 else None)

    def check(self) -> None:
        """Reports workers that died without the end of their pipe: a process that they forked may hold it open."""
        for workers, process in zip(self._houses, self._processes, strict=True):
            if not process.is_alive():
                for worker in workers:
                    self.inbox.put(Message(worker, Kind.ENDED))

    def housemates(self, worker: int) -> Sequence[int]:
        """Returns the workers that live in the same process, this one included."""
        return self._houses[0 if len(self._houses) == 1 else worker]

    def crashed(self) -> int | None:
        """Returns the worker in which native code crashed; None if that is not known."""
        return self._board.crashed()

    def death(self, worker: int, where: Where) -> HeadraceError:
        """Returns the error for a worker that has ended."""
        process = self._process(worker)
        process.join(_EXIT_S)
        if process.exitcode == UNGUARDED_STATUS and not self.has_started(worker):
            return unguarded_error(self._method)
        stack = self._board.read_text()
        return death_error(worker, process.exitcode, where, has_started=self.has_started(worker), stack=stack)

    # ---- between and after runs -------------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """True if every worker lives."""
        # Pipes too: a process that something else in this program has waited for counts as alive for ever.
        return not any(self._has_hung_up) and all(process.is_alive() for process in self._processes)

    def abandon_unfinished(self) -> None:
        """Has the workers skip what they have not begun yet; the next run's orders have higher numbers."""
        # A forked child inherits the run, and drops it sooner or later; the workers are not its own. And the end of the
        # program ends pools before the runs that use them.
        if os.getpid() == self._owner_pid and not self._has_ended:
            self._board.want_from(self.next_seq)

    def end(self, grace_s: float) -> BaseException | None:
        """Ends all workers and gives everything back; does nothing in a forked child, whose workers they are not.

        Args:
            grace_s: Seconds for the workers to finish the order in hand and close the task, before they are killed.

        Returns:
            The first exception of opening or closing the task that nobody has heard of yet, or None.
        """
        if self._has_ended or os.getpid() != self._owner_pid:
            return None
        self._board.want_from(sys.maxsize)
        for wire in self._wires:
            wire.finish()  # the worker reads the end behind its last order, closes the task and leaves
        _join_all(self._processes, grace_s)
        for end in (BaseProcess.terminate, BaseProcess.kill):
            for process in self._processes:
                if process.is_alive():
                    end(process)
            _join_all(self._processes, _KILL_AFTER_S)
        for wire in self._wires:
            wire.cut()  # wakes the receiving thread even if a grandchild holds a worker's end open
        # A garbage collection may end this pool from inside its own receiving thread, which cannot wait for itself.
        if self._receiver.ident is not None and self._receiver is not threading.current_thread():
            self._receiver.join()
        self._has_ended = True
        lifetime.strike_off(self)
        for process in self._processes:
            with contextlib.suppress(ValueError):  # still alive: stuck inside the kernel, beyond SIGKILL
                process.close()
        self._give_back()
        return next((message.value for message in drain(self.inbox) if message.kind.is_about_the_task), None)

    def forget(self) -> None:
        """Drops a forked child's copies of the descriptors."""
        for wire in self._wires:
            wire.close()
        self._shared.close_ours()  # a worker that is just being forked needs the other

    def _give_back(self) -> None:
        for wire in self._wires:
            wire.close()
        self._shared.close()
        self._board.close()
        self._channel.close()


def refuse_unguarded_main(method: str) -> None:
    """Stops a worker that is still starting and, by importing the main script, was about to start a loop itself.

    multiprocessing would let each such worker print a long traceback about its own bootstrapping phase. Instead the
    worker leaves silently with a status of its own, from which the parent knows what to say.

    Raises:
        ConfigurationError: the process is being started by somebody else.
    """
    process = multiprocessing.current_process()
    if not getattr(process, "_inheriting", False):
        return
    if process.name.startswith(_WORKER_NAME):
        sys.stdout.flush()
        os._exit(UNGUARDED_STATUS)  # not SystemExit: fork servers turn that into status 1
    raise unguarded_error(method)


def _join_all(processes: Sequence[BaseProcess], grace_s: float) -> None:
    deadline = time.monotonic() + grace_s
    for process in processes:
        if process.is_alive():
            process.join(max(0.0, deadline - time.monotonic()))


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Has processes start with SIGINT blocked, so that Ctrl-C cannot hit one before it has said that it ignores it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
