"""Iteration that knows how far it is: batches handed over, and whether the pass is over."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

__all__ = ["Counted"]


class Counted:
    """Counts the batches of the pass at hand."""

    def __init__(self) -> None:
        self.batches = 0
        """Handed over in this pass."""
        self.is_over = True
        """No batch of the pass is still to come: its end was seen, the loop is done with it, or none was begun."""
        self.is_iterated = False
        """A loop is going through it right now."""

    def begin(self, batches: Iterator[Any], *, already: int = 0) -> Iterator[Any]:
        """Returns the batches, counted from `already` on.

        A loop that is left early, by `break` or by an exception, does not make the pass over: whether the loop is done with
        the epoch, or was torn out of it, only its author knows.
        """
        self.batches, self.is_over, self.is_iterated = already, False, True
        return self._hand_over(batches)

    def _hand_over(self, batches: Iterator[Any]) -> Generator[Any, None, None]:
        try:
            for batch in batches:
                self.batches += 1
                yield batch
            self.is_over = True
        finally:
            self.is_iterated = False
            close = getattr(batches, "close", None)
            if close is not None:
                close()
