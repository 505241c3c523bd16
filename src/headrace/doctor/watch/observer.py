"""The seam of `watch`: an observer hooks into a library, looks, and says at any time what it has seen so far."""

from __future__ import annotations

from typing import Protocol

from headrace.doctor.evidence import Evidence

__all__ = ["Observer"]


class Observer(Protocol):
    """One topic: loaders, optimizers and modes, checkpoints, ... Observers do not know each other; they share a Timeline.

    A hook never raises into the user's code, never changes a value, an order or random state, and keeps only counts,
    ids and names: no tensors, no references that would keep the user's objects alive.
    """

    def install(self) -> None:
        """Sets the hooks. The library is imported by then."""
        ...

    def uninstall(self) -> None:
        """Takes the hooks away; what was seen stays."""
        ...

    def seen(self) -> tuple[Evidence, ...]:
        """Returns what was seen so far. Called every few seconds, at the end, on Ctrl-C and after an exception."""
        ...
