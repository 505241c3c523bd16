"""One pass over the data, whoever plans it: where it starts, its batches, its books."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from headrace.engine.accounting import Account
from headrace.engine.batch import BatchInfo
from headrace.engine.order.cursor import Cursor

__all__ = ["Run", "timed"]

ResultT = TypeVar("ResultT")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A pass that is ready to be iterated once."""

    epoch: int
    """Number of the pass."""
    start: Cursor
    """State before its first batch."""
    end: Cursor
    """State from which the next pass begins. Under `carry` it lies before the end of the epoch."""
    account: Account
    """Its books, filled while it is iterated."""
    batches: Generator[tuple[Any, BatchInfo], None, None]
    """Its batches with their identity."""


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
