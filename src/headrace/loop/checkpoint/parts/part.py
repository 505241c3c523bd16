"""The seam between the checkpointer and each kind of state."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Part"]


class Part(Protocol):
    """One kind of state of a run. A new kind is a new file in this room.

    The law that the tests demand of each: `load(state())` on objects made anew gives `state()` again, bit for bit.
    """

    @property
    def name(self) -> str:
        """Its name in the checkpoint: model, optimizer, ..."""
        ...

    @property
    def is_per_rank(self) -> bool:
        """Whether each rank has its own, as with random state; else rank 0 writes the one that all share."""
        ...

    def state(self) -> Any:
        """Returns the state as it is now: what `tree.split` takes; tensors may be the live ones."""
        ...

    def load(self, state: Any) -> list[str]:
        """Puts a state back; returns in words what could not be restored exactly.

        Raises:
            StateMismatch: it is of other objects than these; nothing was changed.
        """
        ...
