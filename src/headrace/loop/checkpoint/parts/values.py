"""Dictionaries of the user's own: counters, histories, the best value so far."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from headrace.loop.checkpoint.shards import arranged

__all__ = ["Values"]


class Values:
    """Named dictionaries that are saved by value and filled in place."""

    name = "values"
    is_per_rank = False

    def __init__(self, values: Mapping[str, MutableMapping[Any, Any]]) -> None:
        self.values = dict(values)

    def state(self) -> dict[str, Any]:
        """Returns the dictionaries."""
        return {key: dict(value) for key, value in self.values.items()}

    def load(self, state: Any) -> list[str]:
        """Empties each dictionary and fills it with what was saved; one that was not saved keeps what it has."""
        for key, value in self.values.items():
            if key in state:
                saved = arranged(state[key], value)
                value.clear()
                value.update(saved)
        return [f"{key!r} was not saved, and keeps its present values" for key in self.values if key not in state]
