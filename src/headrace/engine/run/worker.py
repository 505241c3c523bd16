"""What runs inside a worker process, from its first instruction to its last."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.engine.batch_memory import lent_by
from headrace.engine.run.board import Board
from headrace.engine.run.carry import pack_error
from headrace.engine.run.messages import NO_ORDER, Kind
from headrace.engine.run.one_thread import compute_by_one_thread
from headrace.engine.run.packing import unpack
from headrace.engine.run.parcel import Parcel
from headrace.engine.run.shared_orders import Desk
from headrace.engine.run.transport import Sender
from headrace.engine.run.wire import Buffer, Part, Wire
from headrace.protocols import Task

__all__ = ["HEAD", "ORDER_HEAD", "Seat", "serve"]

HEAD = struct.Struct("<iq")
"""First part of each message to the consumer: kind, number of the order."""
ORDER_HEAD = struct.Struct("<q")
"""First part of each message to a worker: number of the order."""

_ORPHAN_CHECK_S = 2.0  # how often a worker looks whether its parent changed, should the pipe not tell
_ORPHAN_GRACE_S = 1.0  # for the order in hand and `task.close` after the parent's death


@dataclasses.dataclass(frozen=True, slots=True)
class Seat:
    """What one worker is given: its number, its end of its pipe, its half of the transport."""

    worker: int
    end: socket.socket
    sender: Sender


def serve(seats: Sequence[Seat], num_workers: int, board: Board, parcel: Parcel, shared: socket.socket | None) -> None:
    """Executes orders until the consumer ends its side of the pipes, by closing or by dying.

    Never raises for what user code does: every exception is sent home. Prints nothing.

    Args:
        seats: The workers that live in this process: one in its main thread, or several in a thread each.
        num_workers: W, in all processes.
        board: Where they leave their marks.
        parcel: The task; several workers of one process share one object.
        shared: Where orders for any worker lie.
    """
    _settle(board)
    threading.Thread(target=_watch_parent, args=(seats[0].end.fileno(), os.getppid()), daemon=True).start()
    # All open and close the same object, and nobody writes a data set's `open` with that in mind.
    door = threading.Lock()
    workers = [_Worker(seat, board, shared, door) for seat in seats]
    if len(workers) == 1:
        workers[0].live(parcel, num_workers)
    else:
        threads = [threading.Thread(target=worker.live, args=(parcel, num_workers)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    board.disarm()


class _Worker:
    def __init__(self, seat: Seat, board: Board, shared: socket.socket | None, door: threading.Lock) -> None:
        self._worker = seat.worker
        self._wire = Wire(seat.end)
        self._board = board
        self._sender = seat.sender
        self._desk = Desk(self._wire.fileno(), shared)
        self._door = door

    def live(self, parcel: Parcel, num_workers: int) -> None:
        self._board.sit_down(self._worker)
        # A broken pipe means that nobody listens any more: the worker leaves without a word.
        with contextlib.suppress(OSError):
            self._work(parcel, num_workers)
        self._desk.close()
        self._wire.close()

    def _work(self, parcel: Parcel, num_workers: int) -> None:
        self._say(Kind.STARTED)
        try:
            with self._door:
                with _uncollected():
                    task = parcel.open()
                compute_by_one_thread()
                self._sender.open()
                task.open(self._worker, num_workers)
        except BaseException as error:
            self._say(Kind.OPEN_FAILED, NO_ORDER, [pack_error(error)])
            return
        self._say(Kind.OPENED)
        try:
            self._execute_all(task)
        finally:
            self._close(task)

    def _execute_all(self, task: Task[Any, Any]) -> None:
        while True:
            try:
                head, *parts = self._desk.wait() or self._wire.receive()
            except EOFError:
                return
            (seq,) = ORDER_HEAD.unpack(head)
            if self._board.is_wanted(seq):
                self._board.take(self._worker, seq)
                self._say(*self._execute(task, seq, parts))
                self._board.take(self._worker, NO_ORDER)
            del head, parts  # while this worker waits, it must not keep an order alive

    def _execute(self, task: Task[Any, Any], seq: int, parts: Sequence[Part]) -> tuple[Kind, int, Sequence[Buffer]]:
        try:
            with lent_by(self._sender.lend):
                result = task.run(unpack(parts), self._mark)
            return Kind.RESULT, seq, self._sender.encode(result)
        # BaseException: sys.exit() or KeyboardInterrupt raised by a data set is a failure of its order as well. A
        # real Ctrl-C does not come here, since SIGINT is ignored.
        except BaseException as error:
            self._sender.take_back()
            return Kind.FAILED, seq, [pack_error(error)]

    def _mark(self, item: int) -> None:
        self._board.mark(self._worker, item)

    def _close(self, task: Task[Any, Any]) -> None:
        try:
            try:
                with self._door:
                    task.close()
            finally:
                self._sender.close()
        except BaseException as error:
            self._say(Kind.CLOSE_FAILED, NO_ORDER, [pack_error(error)])

    def _say(self, kind: Kind, seq: int = NO_ORDER, parts: Sequence[Buffer] = ()) -> None:
        self._wire.send([HEAD.pack(kind, seq), *parts])


def _settle(board: Board) -> None:
    """Makes a process that was just started a good worker."""
    # Ctrl-C in a terminal reaches every process of the group. The consumer decides what it means; a worker that
    # raised KeyboardInterrupt as well would only print a second traceback. The consumer blocked the signal while it
    # started us, so none can have come in between; one that is pending is discarded here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # A handler inherited by fork (a trainer's "save on SIGTERM") belongs to the consumer and must not run here.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    board.arm()
    # What a forked worker inherited is never garbage to it, and a collection that looks through it writes to its pages,
    # which would then no longer be shared with the consumer.
    gc.freeze()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the garbage collector away from what is made meanwhile, now and later: a task lives as long as its worker.

    A data set of a million tuples would be looked through again and again while it is unpickled, and at each full
    collection after that.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def _watch_parent(fd: int, parent: int) -> None:
    """Ends this process when the consumer is gone, even if user code never returns: no orphan.

    Waits for the hang-up of the pipe, which the kernel reports when the consumer's end is closed for good, but not
    when it only finished sending. The parent's number is compared now and then, because a process that the consumer
    forked behind Python's back may hold the pipe open.
    """
    poller = select.poll()
    poller.register(fd, 0)
    while not poller.poll(_ORPHAN_CHECK_S * 1000) and os.getppid() == parent:
        pass
    time.sleep(_ORPHAN_GRACE_S)
    os._exit(1)
