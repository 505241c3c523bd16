"""Orders that any worker of a pool may take: one socket on which the consumer writes and all workers read.

An order given to one worker beforehand waits behind whatever that worker is busy with, while others are idle. Here
nobody is chosen: a message of this kind of socket is read whole by exactly one reader, so the kernel hands each order
to a worker that is free at that moment, without waking the consumer, whose interpreter lock may be busy with training.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Sequence

from headrace.engine.run.wire import Buffer, Part

__all__ = ["Desk", "SharedOrders"]

_LENGTH = struct.Struct("Q")
_LIMIT_BYTES = 64 * 1024
"""Longest message. Half of what the kernel's buffer holds at the least, so that two always fit; a batch of 2,000 rows."""
_CAN_SHARE = hasattr(socket, "SOCK_SEQPACKET") and hasattr(select, "EPOLLEXCLUSIVE")  # Linux


class SharedOrders:
    """Both ends of the socket; made in the consumer, inherited by or passed to the workers."""

    def __init__(self) -> None:
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        if _CAN_SHARE:
            self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    @property
    def workers_end(self) -> socket.socket | None:
        """What each worker reads from; None where the system has no such socket."""
        return self._theirs

    def offer(self, parts: Sequence[Buffer]) -> bool:
        """Lays out one order; False if it is too long, or too many lie there: then it has to go to one worker."""
        if self._ours is None:
            return False
        views = [memoryview(part).cast("B") for part in parts]
        head = b"".join(_LENGTH.pack(len(view)) for view in views)
        if len(head) + sum(map(len, views)) + _LENGTH.size > _LIMIT_BYTES:
            return False
        try:
            self._ours.sendmsg([_LENGTH.pack(len(views)), head, *views], (), socket.MSG_DONTWAIT)
        except OSError:  # full; or no worker lives, which is reported by their own pipes
            return False
        return True

    def hand_over(self) -> None:
        """Drops the workers' end here, once all have it: when the last of them is gone, nobody reads."""
        if self._theirs is not None:
            self._theirs.close()

    def close_ours(self) -> None:
        """Drops the consumer's end. May be called twice."""
        if self._ours is not None:
            self._ours.close()

    def close(self) -> None:
        """Gives both descriptors back. May be called twice."""
        self.hand_over()
        self.close_ours()


class Desk:
    """Where one worker waits for orders: those for anybody, and what comes through its own pipe."""

    def __init__(self, own_fd: int, shared: socket.socket | None) -> None:
        self._shared = shared
        self._poller: select.epoll | None = None
        if shared is not None:
            self._poller = select.epoll()
            self._poller.register(own_fd, select.EPOLLIN)
            # Exclusive: one order wakes one idle worker, not all of them.
            self._poller.register(shared, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    def wait(self) -> list[Part] | None:
        """Returns the parts of an order for anybody, or None if something came through the own pipe."""
        if self._poller is None or self._shared is None:
            return None
        while True:
            ready = [fd for fd, _ in self._poller.poll()]
            # First what is for anybody: only this worker was woken for it, and nobody else may look soon.
            if self._shared.fileno() in ready:
                with contextlib.suppress(BlockingIOError):  # another worker was quicker
                    message = bytearray(self._shared.recv(_LIMIT_BYTES, socket.MSG_DONTWAIT))
                    # Nothing: the consumer has closed this one, and the end of the own pipe is near.
                    return _split(message) if message else None
            elif ready:
                return None

    def close(self) -> None:
        """Gives the descriptor back."""
        if self._poller is not None:
            self._poller.close()


def _split(message: bytearray) -> list[Part]:
    """Cuts a message into its parts, which are views into it."""
    view = memoryview(message)
    (count,) = _LENGTH.unpack_from(view)
    place = _LENGTH.size * (1 + count)
    parts = []
    for i in range(count):
        (length,) = _LENGTH.unpack_from(view, _LENGTH.size * (1 + i))
        parts.append(view[place : place + length])
        place += length
    return parts
