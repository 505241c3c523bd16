"""Where a run stands: steps, epoch, how far into it, and the best so far. The last part but one to be loaded."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

from headrace.errors import ConfigurationError, StateMismatch
from headrace.loop.checkpoint.parts import Part
from headrace.loop.checkpoint.position import Position

__all__ = ["Place"]


class Place:
    """Counters of a run and the place of its loader; a part of the checkpoint.

    An epoch has a top (before its batches), its batches, and a tail (after them). A save in the tail means that the epoch
    is done: `next_epoch` is the one after it.
    """

    name = "place"
    is_per_rank = True

    def __init__(self, position: Position | None, *, best: str | None) -> None:
        self.position = position
        self._best = best
        self.steps = 0
        self.epoch = 0
        self.best_metric: float | None = None
        self.is_changed = False
        """Something was done since the last save."""
        self._within_epochs = False
        self._begun = False
        self._loaded: Any = None
        self._used_s = 0.0
        self._since = time.monotonic()
        self._after_start: tuple[Part, Any] | None = None
        self.batches_used = 0
        """Of the epoch that was loaded."""

    @property
    def batches(self) -> int:
        """Batches handed out in this epoch."""
        return self.position.counted.batches if self.position is not None and self._begun else self.batches_used

    @property
    def next_epoch(self) -> int:
        """The epoch in which a run that is loaded from here goes on."""
        return self.epoch + (1 if self.is_tail else 0)

    @property
    def is_tail(self) -> bool:
        """Whether the batches of this epoch are done with, and the epoch is not."""
        return self._begun and self.position is not None and self.position.counted.is_over

    def begin_epoch(self, num: int) -> bool:
        """Begins the epoch at hand if it is one of `num`."""
        self._within_epochs = True
        return self.epoch < num

    def end_epoch(self) -> None:
        """Goes to the next epoch."""
        self.leave_batches()
        self.epoch += 1
        self._begun, self.batches_used, self.is_changed = False, 0, True

    def leave_batches(self) -> None:
        """Marks the batches of this epoch as done with, also if there are more."""
        if self.position is not None and self._begun:
            self.position.counted.is_over = True

    def batches_of_epoch(self) -> Iterator[Any]:
        """Begins the batches of this epoch, or goes on with those that a loop left; outside of `epochs`, a call is an epoch."""
        if self.position is None:
            raise ConfigurationError("there is no loader to take batches from", do="Checkpointer(..., loader=loader)")
        if self._begun:
            if self.position.counted.is_iterated:
                raise ConfigurationError("the batches of this epoch are being gone through already")
            if not self.position.counted.is_over:
                self.position.load(self.position.state())  # the loop was left: what is left of the pass
            elif not self._within_epochs:
                self.end_epoch()
        self._begun, self._loaded = True, None
        batches = self.position.begin()
        again, self._after_start = self._after_start, None
        if again is not None:
            part, state = again
            part.load(state)
        return batches

    def again_after_start(self, random: Part, state: Any) -> None:
        """Has random state set once more when the rest of a pass begins, because making its iterator draws from it."""
        self._after_start = (random, state) if state is not None and self.batches_used else None

    def check_ranks(self, saved: int, here: int) -> None:
        """Passes if the loader's place fits this number of ranks.

        Raises:
            StateMismatch: it is one of each rank, and there are more or fewer now.
        """
        if saved != here and self.position is not None and not self.position.is_shared:
            raise StateMismatch(
                f"the checkpoint was saved by {saved} ranks, and there are {here}",
                why="the place of this kind of loader is one of each rank, and cannot be divided anew",
                do=(f"start {saved} ranks", "headrace.DataLoader: its state fits any number of ranks"),
            )

    def count_step(self, has_loader: bool) -> None:
        """Counts an optimizer step.

        Raises:
            ConfigurationError: there is a loader whose batches are not being gone through by `batches`.
        """
        if has_loader and not self._begun:
            raise ConfigurationError(
                "step() was called outside of `for batch in checkpoint.batches()`",
                why="the loader's place could not be saved",
                do=(
                    "for batch in checkpoint.batches(): ...    in place of `for batch in loader`",
                    "Checkpointer(...) without loader, if its place need not be saved",
                ),
            )
        self.steps += 1
        self.is_changed = True

    def note_metric(self, metric: float | None) -> bool:
        """Remembers a metric if it is the best so far, and returns whether it is."""
        if metric is None or not self.is_better(metric):
            return False
        self.best_metric = float(metric)
        return True

    def is_better(self, metric: float) -> bool:
        """Whether a metric is better than the best so far. NaN never is, and nothing is if no metric is kept."""
        if self._best is None or math.isnan(metric):
            return False
        best = self.best_metric
        return best is None or (metric > best if self._best == "max" else metric < best)

    def data(self) -> dict[str, Any]:
        """Identity of the data, as far as the loader knows it."""
        state = {} if self.position is None else self.position.state()
        loader = state.get("loader")
        return (
            {"fingerprint": dict(loader["fingerprint"])} if isinstance(loader, dict) and "fingerprint" in loader else {}
        )

    # As a part.

    def state(self) -> dict[str, Any]:
        """Returns the counters and the loader's place."""
        now = time.monotonic()
        self._used_s, self._since = self._used_s + now - self._since, now
        return {
            "steps": self.steps,
            "epoch": self.next_epoch,
            "best_metric": self.best_metric,
            "used_s": self._used_s,
            "loader": self._loader_state(),
        }

    def _loader_state(self) -> Any:
        """The loader's place; what was loaded, until its batches are begun: an iterator that is not made yet says nothing."""
        if self.position is None:
            return None
        return self.position.state() if self._begun or self._loaded is None else self._loaded

    def load(self, state: Any) -> list[str]:
        """Sets the counters, and makes the next batches the ones behind the place."""
        remarks: list[str] = []
        if self.position is not None:
            if state["loader"] is None:
                remarks.append("the loader's place was not saved: it begins an epoch anew")
            else:
                remarks += self.position.load(state["loader"])
        self._loaded = state["loader"]
        self.steps, self.epoch, self.best_metric = state["steps"], state["epoch"], state["best_metric"]
        self._used_s, self._since = state["used_s"], time.monotonic()
        self._begun, self.is_changed = False, False
        loader = state["loader"] or {}
        self.batches_used = 0 if loader.get("is_over", True) else loader["batches"]
        return remarks
