"""How results travel from a worker process to the consumer: the seam, and the simple way through the pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from headrace.engine.run.packing import pack, unpack
from headrace.engine.run.wire import Buffer, Part

__all__ = ["Channel", "PipeTransport", "Sender", "Transport"]


class Transport(Protocol):
    """A way for results; an immutable description that many pools may share.

    Three objects, because three lifetimes exist. A `Transport` is a choice, made once and kept by the runner. A
    `Channel` lives in the consumer's process for as long as one pool and owns whatever the pool needs: a block of
    shared memory with slots, its free list. A `Sender` is the worker's half. Messages always go through the pipe; a
    transport that keeps payloads elsewhere sends only their addresses through it.
    """

    def open(self, num_workers: int, max_in_flight: int) -> Channel:
        """Makes the channel of one pool, before its first worker starts.

        Args:
            num_workers: W >= 1.
            max_in_flight: Results that can exist at once, the one being handed over included: slots to provide.
        """
        ...


class Channel(Protocol):
    """The consumer's half; owns the resources of one pool."""

    def sender(self, worker: int) -> Sender:
        """Returns the half of one worker. It is inherited by fork or pickled while the worker starts.

        Being pickled at that moment, it may pass descriptors on (`multiprocessing.reduction.DupFd`).
        """
        ...

    def decode(self, worker: int, parts: Sequence[Part]) -> Any:
        """Returns the result that a sender encoded.

        Called in the pool's receiving thread, in the sequence in which that worker sent. A result may live in memory
        of the channel; the channel then learns from the result's end (`weakref.finalize`) that its slot is free.
        Results that nobody wants any more are decoded and dropped, so that their slots come back too.
        """
        ...

    def close(self) -> None:
        """Gives everything back; called once, after the last worker has ended, however it ended.

        Results that the consumer still holds must stay valid.
        """
        ...


class Sender(Protocol):
    """The worker's half; used by one thread of one worker."""

    def open(self) -> None:
        """Called in the worker before its first order: attach to shared memory, for example."""
        ...

    def lend(self, num_bytes: int) -> npt.NDArray[np.uint8] | None:
        """Returns memory for a part of the next result, which `encode` then need not copy; None: no place for it."""
        ...

    def take_back(self) -> None:
        """Called instead of `encode` when an order has failed: nobody uses what was lent for it."""
        ...

    def encode(self, result: Any) -> Sequence[Buffer]:
        """Returns the bytes to send; they must stay valid until the next call. An exception fails that order only."""
        ...

    def close(self) -> None:
        """Called in the worker after its last order; not called if the worker is killed."""
        ...


class PipeTransport:
    """Sends results whole through the pipe; owns nothing. Cost: two copies by the kernel, none in Python."""

    def open(self, num_workers: int, max_in_flight: int) -> PipeChannel:  # noqa: ARG002 - the seam's; nothing to size here
        """Makes a channel."""
        return PipeChannel()


class PipeChannel:
    """The consumer's half of `PipeTransport`."""

    def sender(self, worker: int) -> PipeSender:  # noqa: ARG002 - the seam's; all workers are alike here
        """Returns the half of one worker."""
        return PipeSender()

    def decode(self, worker: int, parts: Sequence[Part]) -> Any:  # noqa: ARG002 - as above
        """Returns the result; its arrays and tensors own their memory."""
        return unpack(parts)

    def close(self) -> None:
        """Does nothing: nothing was acquired."""


class PipeSender:
    """The worker's half of `PipeTransport`."""

    def open(self) -> None:
        """Does nothing."""

    def lend(self, num_bytes: int) -> None:
        """Lends nothing."""

    def take_back(self) -> None:
        """Does nothing."""

    def encode(self, result: Any) -> Sequence[Buffer]:
        """Returns the pickle and the buffers of the result."""
        return pack(result)

    def close(self) -> None:
        """Does nothing."""
