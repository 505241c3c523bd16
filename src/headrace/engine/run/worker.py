"""What runs inside a worker process, from its first instruction to its last."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from headrace.engine.run.board import Board
from headrace.engine.run.carry import pack_error
from headrace.engine.run.messages import NO_ORDER, Kind
from headrace.engine.run.packing import unpack
from headrace.engine.run.parcel import Parcel
from headrace.engine.run.transport import Sender
from headrace.engine.run.wire import Buffer, Part, Wire
from headrace.protocols import Task

__all__ = ["HEAD", "ORDER_HEAD", "serve"]

HEAD = struct.Struct("<iq")
"""First part of each message to the consumer: kind, number of the order."""
ORDER_HEAD = struct.Struct("<q")
"""First part of each message to a worker: number of the order."""

_ORPHAN_CHECK_S = 2.0  # how often a worker looks whether its parent changed, should the pipe not tell
_ORPHAN_GRACE_S = 1.0  # for the order in hand and `task.close` after the parent's death


def serve(worker: int, num_workers: int, end: socket.socket, board: Board, parcel: Parcel, sender: Sender) -> None:
    """Executes orders until the consumer ends its side of the pipe, by closing or by dying.

    Never raises for what user code does: every exception is sent home. Prints nothing.
    """
    _settle(board)
    wire = Wire(end)
    threading.Thread(target=_watch_parent, args=(end.fileno(), os.getppid()), daemon=True).start()
    # A broken pipe means that nobody listens any more: the worker leaves without a word.
    with contextlib.suppress(OSError):
        _Worker(worker, wire, board, sender).live(parcel, num_workers)
    board.disarm()
    wire.close()


class _Worker:
    def __init__(self, worker: int, wire: Wire, board: Board, sender: Sender) -> None:
        self._worker = worker
        self._wire = wire
        self._board = board
        self._sender = sender

    def live(self, parcel: Parcel, num_workers: int) -> None:
        self._say(Kind.STARTED)
        try:
            task = parcel.open()
            _one_thread_each()
            self._sender.open()
            task.open(self._worker, num_workers)
            _one_thread_each()  # again: opening may have been what imported torch
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
                head, *parts = self._wire.receive()
            except EOFError:
                return
            (seq,) = ORDER_HEAD.unpack(head)
            if self._board.is_wanted(seq):
                self._board.take(self._worker, seq)
                self._say(*self._execute(task, seq, parts))
                self._board.take(self._worker, NO_ORDER)

    def _execute(self, task: Task[Any, Any], seq: int, parts: Sequence[Part]) -> tuple[Kind, int, Sequence[Buffer]]:
        try:
            result = task.run(unpack(parts), self._mark)
            return Kind.RESULT, seq, self._sender.encode(result)
        # BaseException: sys.exit() or KeyboardInterrupt raised by a data set is a failure of its order as well. A
        # real Ctrl-C does not come here, since SIGINT is ignored.
        except BaseException as error:
            return Kind.FAILED, seq, [pack_error(error)]

    def _mark(self, item: int) -> None:
        self._board.mark(self._worker, item)

    def _close(self, task: Task[Any, Any]) -> None:
        try:
            try:
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


def _one_thread_each() -> None:
    """Keeps W workers from starting W times as many threads as there are cores; as PyTorch does. No torch, no need."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


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
