"""The place of a loader that saves itself, such as torchdata's StatefulDataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.errors import StateMismatch
from headrace.loop.checkpoint.position.counted import Counted

__all__ = ["StatefulPosition"]

WORKERS_BEGIN_ANEW = (
    "workers begin their random streams anew, which their loader does not save: same samples in the same order, other "
    "random draws in them"
)


class StatefulPosition:
    """For any iterable with `state_dict` and `load_state_dict`; how exact it is, is its author's word."""

    is_shared = False

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.counted = Counted()
        self._already: int | None = None

    def begin(self) -> Iterator[Any]:
        """Iterates the loader, which goes on from what it was given."""
        already, self._already = self._already, None
        return self.counted.begin(iter(self.loader), already=already or 0)

    def state(self) -> dict[str, Any]:
        """What the loader says of itself."""
        return {
            "loader": self.loader.state_dict(),
            "kind": type(self.loader).__qualname__,
            "workers": getattr(self.loader, "num_workers", None),
            "batches": self.counted.batches,
            "is_over": self.counted.is_over,
        }

    def load(self, state: dict[str, Any]) -> list[str]:
        """Hands the loader what it said."""
        kind = type(self.loader).__qualname__
        if state.get("kind") != kind:
            raise StateMismatch(f"the loader's place was saved of a {state.get('kind')}, and this is a {kind}")
        here, there = getattr(self.loader, "num_workers", None), state["workers"]
        if here != there:
            raise StateMismatch(
                f"{kind} was saved with {there} workers and has {here}",
                why="its state is one of each worker",
                do=f"num_workers={there}, or headrace.DataLoader, whose state fits any number",
            )
        self.loader.load_state_dict(state["loader"])
        # torchdata's loader makes an iterator of a finished state only to throw it away, and draws a seed for it. Asking for
        # the state makes it now, before random state is set; the next pass then draws what it would have drawn.
        self.loader.state_dict()
        self._already = None if state["is_over"] else state["batches"]
        goes_on = not state["is_over"] or getattr(self.loader, "persistent_workers", False)
        return [WORKERS_BEGIN_ANEW] if here and goes_on else []
