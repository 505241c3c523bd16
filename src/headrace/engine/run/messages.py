"""What a worker, thread or process, says to the consumer."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import queue
from collections.abc import Iterator
from typing import Any

__all__ = ["NO_ORDER", "Kind", "Message", "drain"]

NO_ORDER = -1
"""Stands for "no order in hand" and "no item marked"."""


class Kind(enum.IntEnum):
    """The life of a worker: STARTED, OPENED, then RESULT or FAILED for each order, then ENDED."""

    STARTED = 0
    """The interpreter of the worker is up; nothing of the user's has run yet."""
    OPENED = 1
    """`task.open` has returned."""
    OPEN_FAILED = 2
    """The task could not be rebuilt or opened; value = the exception."""
    RESULT = 3
    """value = what `task.run` returned."""
    FAILED = 4
    """value = the exception to raise in place of the result."""
    CLOSE_FAILED = 5
    """`task.close` raised; value = the exception."""
    ENDED = 6
    """Nothing more will come from this worker."""

    @property
    def is_about_the_task(self) -> bool:
        """True for a failure that belongs to no order."""
        return self in {Kind.OPEN_FAILED, Kind.CLOSE_FAILED}


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One message of one worker."""

    worker: int
    kind: Kind
    seq: int = NO_ORDER
    """Number of the order that RESULT and FAILED answer."""
    value: Any = None


def drain(inbox: queue.SimpleQueue[Message]) -> Iterator[Message]:
    """Yields what is in an inbox now, without waiting."""
    with contextlib.suppress(queue.Empty):
        while True:
            yield inbox.get_nowait()
