"""Which worker gets which order, and in which sequence results leave. Pure bookkeeping: no threads, no waiting.

Orders are numbered as they are taken. The window slides over those numbers: it begins at the next result to hand over
and is never wider than `num_workers * prefetch_factor`, which is what bounds memory.
"""

from __future__ import annotations

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
        prefetch_factor: Orders that one worker may have in hand or waiting, >= 1.
        first_seq: Number of the first order; a persistent crew goes on counting, so that an answer to an order of an
            earlier run can never be taken for one of this run.
    """

    def __init__(self, num_workers: int, prefetch_factor: int, first_seq: int = 0) -> None:
        self._prefetch_factor = prefetch_factor
        self._width = num_workers * prefetch_factor
        self._next_seq = first_seq
        self._end_seq = first_seq
        # Orders without an answer, by worker; a dict keeps the sequence in which they were sent.
        self._open: list[dict[int, OrderT]] = [{} for _ in range(num_workers)]
        self._answers: dict[int, Message] = {}
        self._owner: dict[int, int] = {}

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

    @property
    def awaited_worker(self) -> int:
        """Worker that has the order whose result leaves next."""
        return self._owner[self._next_seq]

    def choose(self, pinned_to: int | None) -> int | None:
        """Returns the worker for an order: the pinned one, or the least busy; None if it has its hands full.

        The least busy worker, not the next in turn: with turns, one slow order would hold back all that is dealt to
        the same worker while others are idle.
        """
        if pinned_to is None:
            worker = min(range(len(self._open)), key=lambda w: len(self._open[w]))
        elif 0 <= pinned_to < len(self._open):
            worker = pinned_to
        else:
            raise ConfigurationError(
                f"an order is pinned to worker {pinned_to}, but workers are 0..{len(self._open) - 1}"
            )
        return worker if len(self._open[worker]) < self._prefetch_factor else None

    def assign(self, worker: int, order: OrderT) -> int:
        """Records that `order` goes to `worker` and returns its number."""
        seq = self._end_seq
        self._end_seq += 1
        self._open[worker][seq] = order
        self._owner[seq] = worker
        return seq

    def refuse(self, error: BaseException) -> None:
        """Puts an exception in the place of an order that could not be taken: earlier results still leave first."""
        seq = self._end_seq
        self._end_seq += 1
        self._answers[seq] = Message(_CONSUMER, Kind.FAILED, seq, error)

    def answer(self, message: Message) -> bool:
        """Takes the answer to one order; returns False if nobody waits for it (an order of an abandoned run)."""
        worker = self._owner.get(message.seq)
        if worker is None or self._open[worker].pop(message.seq, None) is None:
            return False
        self._answers[message.seq] = message
        return True

    def pop(self) -> Message:
        """Hands over the answer that leaves next."""
        message = self._answers.pop(self._next_seq)
        self._owner.pop(self._next_seq, None)
        self._next_seq += 1
        return message

    def unanswered(self, worker: int) -> dict[int, OrderT]:
        """Returns the orders that a worker has in hand or waiting, by number, oldest first."""
        return self._open[worker]
