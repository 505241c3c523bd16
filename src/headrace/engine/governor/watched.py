"""Makes sure that code in a shared process leaves the global generators alone, order by order."""

from __future__ import annotations

from typing import Any

from headrace.engine.transform import global_generators as generators
from headrace.errors import GlobalRandomness, Where
from headrace.protocols import Mark, Task

__all__ = ["WatchedTask"]


class WatchedTask:
    """A task in a process of its own, where nobody else draws: so whoever drew is found before anything is delivered.

    An order that drew sees the generators moved when it ends, and is refused; one that ran beside it may be refused as
    well, though it drew nothing. Neither has left the process.
    """

    def __init__(self, task: Task[Any, Any]) -> None:
        self._task = task
        self._before: generators.GlobalState | None = None

    def open(self, worker: int | None, num_workers: int) -> None:
        """Opens the task, and looks where the generators stand; workers of a process open one after another."""
        self._task.open(worker, num_workers)
        if self._before is None:
            self._before = generators.capture()

    def run(self, order: Any, mark: Mark) -> Any:
        """Returns the result of the order, or raises GlobalRandomness if a generator moved."""
        assert self._before is not None
        result = self._task.run(order, mark)
        moved = generators.moved_since(self._before)
        if moved:
            raise GlobalRandomness(
                f"this data draws from {', '.join(moved)}, which the threads of a process share",
                where=self.where(order, None),
            )
        return result

    def close(self) -> None:
        """Closes the task."""
        self._task.close()

    def pinned_to(self, order: Any) -> int | None:
        """Returns what the task says."""
        return self._task.pinned_to(order)

    def where(self, order: Any, item: int | None) -> Where:
        """Returns what the task says."""
        return self._task.where(order, item)
