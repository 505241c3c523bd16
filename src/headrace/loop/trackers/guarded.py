"""A tracker that never stops the training."""

from __future__ import annotations

import collections
import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import TrackerWarning
from headrace.loop.trackers.tracker import RunInfo, Tracker

__all__ = ["Guarded"]


class Guarded:
    """Passes everything on to a tracker, and turns its failures into warnings.

    Each kind of failure (which call, which exception) is told when it first happens; how often it came again is told at the
    end. A tracker that could not start is given nothing to log. Ctrl-C passes: it is no failure of the tracker.

    Args:
        tracker: The one that may fail.
    """

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._failures: collections.Counter[str] = collections.Counter()
        self._state: dict[str, Any] = {}
        self._is_started = False
        self._num_unlogged = 0

    @property
    def name(self) -> str:
        """Name of the tracker."""
        return self._tracker.name

    def start(self, run: RunInfo) -> None:
        """Starts it; if that fails, the history of this process is not kept by it."""

        def start() -> bool:
            self._tracker.start(run)
            return True

        self._is_started = self._attempt("start", start, instead=False)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Has the values kept, if it can."""
        if self._is_started:
            self._attempt("log", lambda: self._tracker.log(values, step), instead=None)
        else:
            self._num_unlogged += 1

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Has the file kept, if it can."""
        if self._is_started:
            self._attempt("artifact", lambda: self._tracker.artifact(path, name), instead=None)
        else:
            self._num_unlogged += 1

    def finish(self, status: str) -> None:
        """Finishes it, and tells what failed since it was told."""
        if self._is_started:
            self._attempt("finish", lambda: self._tracker.finish(status), instead=None)
        later = {kind: times - 1 for kind, times in self._failures.items() if times > 1}
        parts = [f"{kind} {times:,} more times" for kind, times in later.items()]
        parts += [f"{self._num_unlogged:,} calls were not made after it could not start"] if self._num_unlogged else []
        self._failures.clear()
        self._num_unlogged = 0
        if parts:
            warnings.warn(
                f"tracker {self.name}: its history has gaps: {'; '.join(parts)}", TrackerWarning, stacklevel=2
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns its state; if that fails, the one before, so that the run is still found again."""
        self._state = self._attempt("state_dict", self._tracker.state_dict, instead=self._state)
        return self._state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Gives it its state."""
        self._state = dict(state)
        self._attempt("load_state_dict", lambda: self._tracker.load_state_dict(state), instead=None)

    def _attempt(self, call: str, work: Callable[[], Any], *, instead: Any) -> Any:
        """Returns what `work` does, or `instead` if it fails."""
        try:
            return work()
        except Exception as error:
            kind = f"{call}: {type(error).__name__}"
            self._failures[kind] += 1
            if self._failures[kind] == 1:
                warnings.warn(
                    f"tracker {self.name} failed in {call}, and training goes on without it: {type(error).__name__}: {error}",
                    TrackerWarning,
                    stacklevel=3,
                )
            return instead
