"""Pass after pass in one run of the workers: they begin the next while the last batches of this one are handed over."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Generic, TypeVar

from headrace.engine.order.cursor import Cursor

__all__ = ["Relay", "timed"]

OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")


class Relay(Generic[OrderT, ResultT]):
    """The results of a run of orders, handed over leg by leg.

    A leg is one pass. Between two legs the run stands still in the consumer, and the workers go on with what was given
    out. It ends with its orders, with an error, with a leg that is broken off, or with this object.

    Args:
        run: Executes orders.
        orders: Of one pass, or of one after another.
    """

    def __init__(
        self, run: Callable[[Iterable[OrderT]], Iterator[ResultT]], orders: Generator[OrderT, None, None]
    ) -> None:
        self._in_flight: deque[OrderT] = deque()
        self._results = timed(run(_noted(orders, self._in_flight)))
        self._next_start: Cursor | None = None

    def goes_on_from(self, start: Cursor) -> bool:
        """Returns True if the leg that comes next begins there; False while another is under way."""
        return self._next_start is not None and self._next_start == start

    def leg(self, num_orders: int | None, next_start: Cursor) -> Generator[tuple[OrderT, ResultT, float], None, None]:
        """Returns the orders of one leg, each with its result and the seconds that were waited for it.

        Args:
            num_orders: Orders in this leg; None = all that there are, after which the run is closed.
            next_start: Where the leg after this one begins.
        """
        self._next_start = None  # now, and not with the first result: from here on this run belongs to this leg
        return self._hand_over(num_orders, next_start)

    def _hand_over(
        self, num_orders: int | None, next_start: Cursor
    ) -> Generator[tuple[OrderT, ResultT, float], None, None]:
        num_done = 0
        try:
            for result, wait_s in itertools.islice(self._results, num_orders):
                num_done += 1
                yield self._in_flight.popleft(), result, wait_s
        finally:
            if num_done == num_orders:
                self._next_start = next_start
            else:
                self._results.close()

    def release(self) -> None:
        """Ends the run, unless a leg is under way, which ends it itself."""
        if self._next_start is not None:
            self._next_start = None
            self._results.close()


def _noted(orders: Iterator[OrderT], in_flight: deque[OrderT]) -> Iterator[OrderT]:
    """Yields the orders, and notes which are out. No method, so that a relay is not part of its own run."""
    for order in orders:
        in_flight.append(order)
        yield order


def timed(results: Iterator[ResultT]) -> Generator[tuple[ResultT, float], None, None]:
    """Yields each result with the seconds that asking for it took; closes `results` when closed."""
    try:
        while True:
            asked = time.perf_counter()
            try:
                result = next(results)
            except StopIteration:
                return
            yield result, time.perf_counter() - asked
    finally:
        close = getattr(results, "close", None)
        if close is not None:
            close()
