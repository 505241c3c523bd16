"""Which kind of place a loader has."""

from __future__ import annotations

from typing import Any

from headrace.loop.checkpoint.position.own import OwnPosition
from headrace.loop.checkpoint.position.position import Position
from headrace.loop.checkpoint.position.replayed import ReplayedPosition
from headrace.loop.checkpoint.position.stateful import StatefulPosition

__all__ = ["position_of"]


def position_of(loader: Any) -> Position:
    """Returns the place of a loader: headrace's own, one that saves itself, or one that is played again.

    Raises:
        ConfigurationError: it is an iterator.
    """
    from headrace.engine.loader import DataLoader
    from headrace.engine.view import LoaderView

    if isinstance(loader, DataLoader | LoaderView):
        return OwnPosition(loader)
    if all(callable(getattr(loader, name, None)) for name in ("state_dict", "load_state_dict")):
        return StatefulPosition(loader)
    return ReplayedPosition(loader)
