"""JSON lines: the history as a file that any program reads."""

from __future__ import annotations

import os
import pathlib
import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import ConfigurationError
from headrace.loop.trackers.history import History
from headrace.loop.trackers.plain import numbers
from headrace.loop.trackers.tracker import RunInfo

__all__ = ["JsonLines"]


class JsonLines:
    """Writes `history.jsonl` in the folder of the run; needs no library.

        {"run": "digits", "time": 1767225600.0, "resumed_at": null, "config": {...}, "facts": {...}}
        {"step": 1, "time": 1767225600.5, "loss": 2.31, "lr": 0.01}
        {"artifact": "model.svg", "time": 1767225601.0, "path": "artifacts/model.svg"}

    `time` is seconds since 1970. Numbers that JSON lacks are the text "NaN", "Infinity", "-Infinity", which `float(...)` makes
    numbers again. Each line is handed to the system at once; with each checkpoint all of them are forced to the disk.

    A run that goes on adds a line with `resumed_at`, and lines of later steps are cut away first. One that begins where there
    is a history already keeps that one as `history.1.jsonl`.

    Args:
        path: The file. Default `history.jsonl` in the folder of the run. Artifacts are copied to `artifacts` beside it.
        clock: Seconds since 1970.
    """

    name = "jsonl"

    def __init__(self, path: str | os.PathLike[str] | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = None if path is None else pathlib.Path(path)
        self._clock = clock
        self._history: History | None = None
        self._resumed_at: int | None = None

    def start(self, run: RunInfo) -> None:
        """Opens the file behind what stays of it."""
        self._history = History(self._path or run.folder / "history.jsonl")
        self._history.open(run.resumed_at)
        self._resumed_at = run.resumed_at
        what = {"resumed_at": run.resumed_at, "config": run.config, "facts": run.facts}
        self._history.append({"run": run.name, "time": self._clock(), **what})

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Appends one line. Values of the step at which the run went on that stand there already are left out."""
        history = self._opened()
        found = numbers(values)
        if step == self._resumed_at:
            found = {name: value for name, value in found.items() if name not in history.names_there}
        if found or not values:
            history.append({"step": step, "time": self._clock(), **found})

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Copies a file beside the history; a later one of the same name takes its place."""
        history = self._opened()
        within = pathlib.PurePath(name)
        if within.is_absolute() or ".." in within.parts or not within.parts:
            raise ConfigurationError(f"artifact name {name!r} leads out of the folder of artifacts")
        target = history.path.parent / "artifacts" / within
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f"{target.name}.new")
        shutil.copyfile(path, new)
        new.replace(target)
        history.append({"artifact": name, "time": self._clock(), "path": f"artifacts/{within}"})

    def finish(self, status: str) -> None:
        """Writes how the run ended, and puts everything on the disk."""
        history = self._opened()
        history.append({"status": status, "time": self._clock()})
        history.close()

    def state_dict(self) -> dict[str, Any]:
        """Puts what was logged so far on the disk, where the checkpoint is going; the file itself holds all else."""
        if self._history is not None:
            self._history.sync()
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes nothing: the file holds all."""

    def _opened(self) -> History:
        if self._history is None:
            raise ConfigurationError(
                "the tracker was not started", do="tracker.start(run) before log, artifact, finish"
            )
        return self._history
