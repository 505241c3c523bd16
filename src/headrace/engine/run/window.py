"""Which orders are out, and in which sequence results leave. Pure bookkeeping: no threads, no waiting.

An order is bound to a worker only if it must be; all others are taken by whoever is free, so that a slow one holds
back nothing but its own result. Orders are numbered as they are taken. The window slides over those numbers: it begins
at the next result to hand over and is never wider than `num_workers * prefetch_factor`, which is what bounds memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from headrace.engine.run.messages import Kind, Message
from headrace.errors import ConfigurationError

__all__ = ["Window"]

OrderT = TypeVar("OrderT")

_CONSUMER = -1
"""Stands for the worker of an answer that the consumer's own thread gave."""


class Window(Generic[OrderT]):
    """Orders that are taken and not yet handed over.

    Args:
        num_workers: W >= 1.
        prefetch_factor: Orders per worker that may be out, >= 1; of those bound to one worker, never more.
        first_seq: Number of the first order; a persistent crew goes on counting, so that an answer to an order of an
            earlier run can never be taken for one of this run.
    """

    def __init__(self, num_workers: int, prefetch_factor: int, first_seq: int = 0) -> None:
        self._prefetch_factor = prefetch_factor
        self._width = num_workers * prefetch_factor
        self._next_seq = first_seq
        self._end_seq = first_seq
        # Orders without an answer; dicts keep the sequence in which they were taken.
        self._open: dict[int, OrderT] = {}
        self._bound: list[dict[int, OrderT]] = [{} for _ in range(num_workers)]
        self._owner: dict[int, int] = {}
        self._answers: dict[int, Message] = {}

    @property
    def next_seq(self) -> int:
        """Number of the order whose result leaves next."""
        return self._next_seq

    @property
    def end_seq(self) -> int:
        """Number that the next order taken will get."""
        return self._end_seq

    @property
    def has_room(self) -> bool:
        """True if another order may be taken."""
        return self._end_seq - self._next_seq < self._width

    @property
    def is_empty(self) -> bool:
        """True if every order taken was handed over."""
        return self._end_seq == self._next_seq

    @property
    def is_ready(self) -> bool:
        """True if the result that leaves next is here."""
        return self._next_seq in self._answers

    def can_take(self, pinned_to: int | None) -> bool:
        """True if an order may go out; one that is pinned, only while its worker has not its hands full.

        Raises:
            ConfigurationError: it is pinned to a worker that does not exist.
        """
        if pinned_to is None:
            return self.has_room
        if not 0 <= pinned_to < len(self._bound):
            raise ConfigurationError(
                f"an order is pinned to worker {pinned_to}, but workers are 0..{len(self._bound) - 1}"
            )
        return self.has_room and len(self._bound[pinned_to]) < self._prefetch_factor

    def take(self, order: OrderT, worker: int | None = None) -> int:
        """Records that `order` goes out, to this worker and no other (None: to any), and returns its number."""
        seq = self._end_seq
        self._end_seq += 1
        self._open[seq] = order
        if worker is not None:
            self._bound[worker][seq] = order
            self._owner[seq] = worker
        return seq

    @property
    def has_unbound(self) -> bool:
        """True if an order without an answer is out that any worker may execute."""
        return len(self._open) > len(self._owner)

    def least_bound(self) -> int:
        """Returns the worker to which the fewest orders are bound; below `prefetch_factor` if there is room."""
        return min(range(len(self._bound)), key=lambda w: len(self._bound[w]))

    def refuse(self, error: BaseException) -> None:
        """Puts an exception in the place of an order that could not be taken: earlier results still leave first."""
        seq = self._end_seq
        self._end_seq += 1
        self._answers[seq] = Message(_CONSUMER, Kind.FAILED, seq, error)

    def answer(self, message: Message) -> bool:
        """Takes the answer to one order; returns False if nobody waits for it (an order of an abandoned run)."""
        if self._open.pop(message.seq, None) is None:
            return False
        owner = self._owner.pop(message.seq, None)
        if owner is not None:
            del self._bound[owner][message.seq]
        self._answers[message.seq] = message
        return True

    def pop(self) -> Message:
        """Hands over the answer that leaves next."""
        message = self._answers.pop(self._next_seq)
        self._next_seq += 1
        return message

    @property
    def unanswered(self) -> Mapping[int, OrderT]:
        """Orders without an answer, by number, oldest first."""
        return self._open

    def bound_to(self, worker: int) -> Mapping[int, OrderT]:
        """Returns the orders without an answer that only this worker may execute, by number, oldest first."""
        return self._bound[worker]
