"""Objects that know their own state: schedulers, GradScaler, averages, anything with a state_dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigurationError, StateMismatch
from headrace.loop.checkpoint.parts.names import two_sides
from headrace.loop.checkpoint.shards import arranged

__all__ = ["Objects"]


class Objects:
    """Named objects with `state_dict` and `load_state_dict`.

    Args:
        name: The part's name in the checkpoint.
        objects: The objects by name.
        is_per_rank: Whether each rank keeps its own.
    """

    def __init__(self, name: str, objects: Mapping[str, Any], *, is_per_rank: bool = False) -> None:
        self.name = name
        self.objects = dict(objects)
        self.is_per_rank = is_per_rank
        for key, one in self.objects.items():
            lacking = [word for word in ("state_dict", "load_state_dict") if not callable(getattr(one, word, None))]
            if lacking:
                raise ConfigurationError(
                    f"{name} {key!r} ({type(one).__name__}) has no {' and no '.join(lacking)}",
                    do="give it these two methods, or hand over a dict of plain values, which is saved and filled in place",
                )

    def state(self) -> dict[str, Any]:
        """Returns what each object's state_dict returns."""
        return {key: one.state_dict() for key, one in self.objects.items()}

    def load(self, state: Any) -> list[str]:
        """Hands each object what was saved under its name."""
        missing, extra = two_sides(self.objects, state)
        if missing or extra:
            raise StateMismatch(
                f"{self.name} saved: {', '.join(map(repr, state)) or 'none'}; here: {', '.join(map(repr, self.objects)) or 'none'}",
                do="build the checkpointer with the same objects under the same names",
            )
        for key, one in self.objects.items():
            one.load_state_dict(arranged(state[key], one.state_dict()))
        return []
