"""The place of headrace's own loader: its state is all there is to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.loop.checkpoint.position.counted import Counted

__all__ = ["OwnPosition"]


class OwnPosition:
    """For `headrace.DataLoader` and what `.to(...)` makes of it."""

    is_shared = True

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.counted = Counted()
        self._left_off: dict[str, Any] | None = None

    def begin(self) -> Iterator[Any]:
        """Goes on; the rest of a pass whose last batch was handed over is empty."""
        saved, self._left_off = self._left_off, None
        batches = iter(self.loader)
        if saved is None or saved["is_over"]:
            return self.counted.begin(batches)
        if self.loader.stats().epoch != saved["pass"]:
            # Saved behind the last batch, while the loop had the end of this epoch still before it.
            getattr(batches, "close", lambda: None)()
            self.loader.load_state_dict(saved["loader"])
            batches = iter(())
        return self.counted.begin(batches, already=saved["batches"])

    def state(self) -> dict[str, Any]:
        """The loader's cursor, and which pass it is."""
        return {
            # A loop that left a pass early begins the next one anew; the loader's state would be in the middle of it.
            "loader": self.loader.next_start.state_dict() if self.counted.is_over else self.loader.state_dict(),
            "pass": self.loader.stats().epoch,
            "batches": self.counted.batches,
            "is_over": self.counted.is_over,
        }

    def load(self, state: dict[str, Any]) -> list[str]:
        """Hands the loader its cursor."""
        self.loader.load_state_dict(state["loader"])
        self._left_off = state
        return []
