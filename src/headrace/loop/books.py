"""The histories of one run: every tracker is told the same, on rank 0, and none of them can stop the training."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.loop.trackers import Guarded, RunInfo, Tracker

__all__ = ["Books"]


class Books:
    """The trackers of a run.

    Args:
        trackers: What keeps the history. Two of one name get numbers.
        is_kept_here: Whether this rank keeps it: rank 0.

    Its state rides in the checkpoint: the identity of the run in each tracker, so that a run that goes on goes on there.
    """

    def __init__(self, trackers: Sequence[Tracker], *, is_kept_here: bool) -> None:
        self._trackers: dict[str, Guarded] = {}
        for one in trackers if is_kept_here else ():
            name, number = one.name, 1
            while name in self._trackers:
                number += 1
                name = f"{one.name}-{number}"
            self._trackers[name] = Guarded(one)
        self._is_open = False

    def start(self, run: RunInfo) -> None:
        """The run begins, or goes on."""
        for one in self._trackers.values():
            one.start(run)
        self._is_open = True

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Keeps values of a step."""
        for one in self._trackers.values():
            one.log(values, step)

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Keeps a file."""
        for one in self._trackers.values():
            one.artifact(path, name)

    def finish(self, status: str) -> None:
        """The run is over; told once."""
        if self._is_open:
            self._is_open = False
            for one in self._trackers.values():
                one.finish(status)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of each tracker by its name."""
        return {name: one.state_dict() for name, one in self._trackers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hands each tracker its state; one that is new begins, and what is of one that is gone is left."""
        for name, one in self._trackers.items():
            if name in state:
                one.load_state_dict(state[name])
