"""The seam between the checkpointer and each kind of loader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from headrace.loop.checkpoint.position.counted import Counted

__all__ = ["Position"]


class Position(Protocol):
    """The place of one loader.

    The law that the tests demand of each: after `load(state)` in a new process, the batches of `begin()` and of all
    later ones are those that the run that was saved would have had.
    """

    @property
    def counted(self) -> Counted:
        """How far the pass at hand is."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether the state is the same on every rank and fits any number of them."""
        ...

    def begin(self) -> Iterator[Any]:
        """Returns the rest of the pass that was loaded, once; from then on the next whole pass at each call."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns the place after the batch that was handed over last."""
        ...

    def load(self, state: dict[str, Any]) -> list[str]:
        """Makes `begin` go on from a place; returns in words what will not be exactly as it was.

        Raises:
            StateMismatch: it is the place of another loader.
        """
        ...
