"""Orders on their way through one setting after another: taken once, given out in order, again if they were lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["Feed"]

OrderT = TypeVar("OrderT")


class Feed(Generic[OrderT]):
    """Gives orders out in stretches; remembers those without an answer."""

    def __init__(self, orders: Iterable[OrderT]) -> None:
        self._orders = iter(orders)
        self._waiting: deque[OrderT] = deque()  # taken, not given out
        self._out: deque[OrderT] = deque()  # given out, not answered
        self._is_open = True
        self._is_exhausted = False

    @property
    def is_done(self) -> bool:
        """True if every order was answered and there are no more."""
        return self._is_exhausted and not self._waiting and not self._out

    def stretch(self) -> Iterator[OrderT]:
        """Yields the orders that follow, until `end_stretch`."""
        self._is_open = True
        while self._is_open:
            if not self._waiting and not self._take():
                return
            order = self._waiting.popleft()
            self._out.append(order)
            yield order

    def in_turn(self) -> Iterator[OrderT]:
        """Yields the orders that follow, for whoever answers each before asking for the next; may be left at any time."""
        while self._waiting or self._take():
            yield self._waiting.popleft()

    def end_stretch(self) -> None:
        """Gives out no more; what is out is still answered."""
        self._is_open = False

    def answered(self) -> None:
        """Takes note that the oldest order has its answer."""
        self._out.popleft()

    def rewind(self) -> None:
        """Gives out again what was not answered: those who had it are gone."""
        self._waiting.extendleft(reversed(self._out))
        self._out.clear()

    def peek(self, num_orders: int) -> list[OrderT]:
        """Returns up to so many of the orders that follow, without giving them out."""
        while len(self._waiting) < num_orders and self._take():
            pass
        return list(self._waiting)[:num_orders]

    def _take(self) -> bool:
        if self._is_exhausted:
            return False
        try:
            self._waiting.append(next(self._orders))
        except StopIteration:
            self._is_exhausted = True
            return False
        return True
