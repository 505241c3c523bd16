"""Framed messages over one socket pair between the consumer and one worker.

A frame is a count, as many lengths, then the parts one after another. Parts are written from where they lie and read
into fresh memory of their own, so that a large array is copied by the kernel only, and arrives writable.

A socket pair rather than two pipes: one descriptor on each side, the end of either side is seen by the other, and one
direction can be ended while the other is still drained.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["Buffer", "Part", "Wire"]

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes to send."""
Part = memoryview
"""Received bytes: writable memory that belongs to the receiver alone."""

_COUNT = struct.Struct("Q")
_LENGTH = struct.Struct("Q")  # both in the machine's own form: the two sides always share a machine
_MAX_VECTOR = 512  # half of Linux's IOV_MAX: buffers per system call
_STALL_S = 1.0  # how often a blocked sender looks up


class Wire:
    """One end of the pair. One thread may send while another receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        """Returns the descriptor, or -1 after `close`."""
        return self._end.fileno()

    def send(self, parts: Sequence[Buffer], stalled: Callable[[], None] | None = None) -> None:
        """Sends one frame; blocks until the other side has room.

        Args:
            parts: The bytes of the frame.
            stalled: Called every second while the other side does not read; may raise to give up. A worker that is
                stuck reads nothing, and an order of a megabyte does not fit the kernel's buffer: without this the
                consumer would hang in here, where no deadline can reach it.

        Raises:
            OSError: the other side is gone.
        """
        views = [memoryview(part).cast("B") for part in parts]
        head = _COUNT.pack(len(views)) + b"".join(_LENGTH.pack(len(view)) for view in views)
        queue = [memoryview(head), *(view for view in views if len(view))]
        while queue:
            queue = _advance(queue, self._send_some(queue[:_MAX_VECTOR], stalled))

    def _send_some(self, views: list[memoryview], stalled: Callable[[], None] | None) -> int:
        if stalled is None:
            return self._end.sendmsg(views)
        while True:
            with contextlib.suppress(BlockingIOError):
                return self._end.sendmsg(views, (), socket.MSG_DONTWAIT)
            poller = select.poll()
            poller.register(self._end, select.POLLOUT)
            if not poller.poll(_STALL_S * 1000):
                stalled()

    def receive(self) -> list[Part]:
        """Returns the parts of the next frame; blocks until it is complete.

        Raises:
            EOFError: the other side has ended, perhaps in the middle of a frame.
            OSError: the connection broke.
        """
        (count,) = self._read([_COUNT.size])
        (lengths,) = self._read([_LENGTH.size * _COUNT.unpack(count)[0]])
        return self._read([length for (length,) in _LENGTH.iter_unpack(lengths)])

    def _read(self, lengths: list[int]) -> list[Part]:
        # numpy's memory, not a bytearray's, because it is not filled with zeros first.
        parts = [np.empty(length, np.uint8).data for length in lengths]
        queue = [part for part in parts if len(part)]
        while queue:
            size = self._end.recvmsg_into(queue[:_MAX_VECTOR])[0]
            if size == 0:
                raise EOFError("the other side has ended")
            queue = _advance(queue, size)
        return parts

    def finish(self) -> None:
        """Ends our direction: the other side reads to the end of what was sent. It can still send."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Ends both directions; wakes a thread that is blocked in `receive`, which closing alone would not do."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the descriptor back. May be called twice."""
        self._end.close()


def _advance(queue: list[memoryview], size: int) -> list[memoryview]:
    """Drops the first `size` bytes of a list of buffers."""
    for i, view in enumerate(queue):
        if size < len(view):
            return [view[size:], *queue[i + 1 :]]
        size -= len(view)
    return []
