"""One pass over the data, whoever plans it: where it starts, its batches, its books."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any

from headrace.engine.accounting import Account
from headrace.engine.batch import BatchInfo
from headrace.engine.order.cursor import Cursor
from headrace.engine.relay import Relay
from headrace.engine.work import Delivery, WorkOrder

__all__ = ["Run"]


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
    relay: Relay[WorkOrder, Delivery] | None = None
    """The run of the workers that it is a leg of, which the next pass may go on with; None: none."""
