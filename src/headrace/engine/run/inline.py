"""The plain loop: every order is executed in the caller. What it does is what every other runner must do."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import ClassVar, TypeVar

from headrace.protocols import Task

__all__ = ["InlineRunner", "no_mark"]

OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")


class InlineRunner:
    """Executes in the caller, one order when one result is asked for, so that tracebacks and debuggers work as usual."""

    name: ClassVar[str] = "inline"
    num_workers: ClassVar[int] = 0
    max_in_flight: ClassVar[int] = 1

    def run(self, task: Task[OrderT, ResultT], orders: Iterable[OrderT]) -> Generator[ResultT, None, None]:
        """Yields the result of each order."""
        task.open(None, 0)
        try:
            for order in orders:
                yield task.run(order, no_mark)
        finally:
            task.close()

    def close(self) -> None:
        """Does nothing: no worker was started."""


def no_mark(item: int) -> None:
    """Forgets the mark: a death in the caller takes along whoever could read it."""
