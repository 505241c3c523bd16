"""How findings about a training loop speak of places."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["at", "of_kind", "some"]


def at(place: str | None) -> str:
    """Returns ` at train.py:20`; nothing if the place is not known."""
    return f" at {place}" if place else ""


def of_kind(kind: str, place: str | None) -> str:
    """Returns `Adam made at train.py:20`."""
    return f"{kind} made at {place}" if place else kind


def some(names: Sequence[str], limit: int = 3) -> str:
    """Returns `fc.weight, fc.bias and 4 more`."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"
