"""The thread that empties the pipes of a pool, whether or not anybody asks for results.

So a worker never waits long to hand one over, and results are decoded and ready when they are asked for. Memory stays
bounded, since no more orders are out than the window allows. The thread has no reference to its pool, which otherwise
could never be forgotten.
"""

from __future__ import annotations

import queue
import select
from collections.abc import Sequence

from headrace.engine.run.carry import unpack_error
from headrace.engine.run.messages import Kind, Message
from headrace.engine.run.transport import Channel
from headrace.engine.run.wire import Part, Wire
from headrace.engine.run.worker import HEAD

__all__ = ["receive"]


def receive(
    wires: Sequence[Wire], inbox: queue.SimpleQueue[Message], channel: Channel, has_hung_up: list[bool]
) -> None:
    """Moves what the workers say into the inbox, until all have ended; sets `has_hung_up[w]` when worker w has."""
    poller = select.poll()
    workers = {wire.fileno(): worker for worker, wire in enumerate(wires)}
    for fd in workers:
        poller.register(fd, select.POLLIN)
    while workers:
        for fd, _ in poller.poll():
            worker = workers[fd]
            try:
                head, *parts = wires[worker].receive()
            # MemoryError too: in the middle of a frame the rest of the stream has no meaning.
            except (EOFError, OSError, MemoryError):
                poller.unregister(fd)
                del workers[fd]
                has_hung_up[worker] = True
                inbox.put(Message(worker, Kind.ENDED))
            else:
                inbox.put(_read(worker, channel, head, parts))
                del head, parts  # while this thread waits, it must not keep a batch alive


def _read(worker: int, channel: Channel, head: Part, parts: Sequence[Part]) -> Message:
    kind, seq = HEAD.unpack(head)
    if kind == Kind.RESULT:
        try:
            return Message(worker, Kind.RESULT, seq, channel.decode(worker, parts))
        except Exception as error:
            error.add_note(f"headrace: the result of worker {worker} arrived, but cannot be unpickled here")
            return Message(worker, Kind.FAILED, seq, error)
    return Message(worker, Kind(kind), seq, unpack_error(parts[0], worker) if parts else None)
