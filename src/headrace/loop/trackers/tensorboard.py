"""TensorBoard: event files in the folder of the run."""

from __future__ import annotations

import json
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigurationError
from headrace.loop.trackers.plain import numbers, plain
from headrace.loop.trackers.required import require
from headrace.loop.trackers.tracker import RunInfo

__all__ = ["TensorBoard"]


class TensorBoard:
    """Writes event files for TensorBoard: values as scalars, settings and facts as text.

        tensorboard --logdir runs

    Values are kept as float32, TensorBoard's own format. A run that goes on writes a new file, whose first event tells
    TensorBoard to leave out what earlier files hold of later steps. With each checkpoint all events are handed to the system.
    TensorBoard keeps no files: of an artifact it is noted where it lies.

    Args:
        folder: Where to. Default `tensorboard` in the folder of the run.

    Raises:
        MissingExtra: tensorboard is not installed.
    """

    name = "tensorboard"

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        require("tensorboard", "the TensorBoard tracker")
        self._given = None if folder is None else pathlib.Path(folder)
        self._folder = pathlib.Path()
        self._writer: Any = None
        self._resumed_at: int | None = None
        self._step = 0
        self._there: set[str] | None = None

    def start(self, run: RunInfo) -> None:
        """Opens a new event file, and writes settings and facts into it."""
        from torch.utils.tensorboard import SummaryWriter

        self._folder = self._given or run.folder / "tensorboard"
        self._resumed_at, self._step = run.resumed_at, run.resumed_at or 0
        earlier = _event_files(self._folder)
        purge = None if not earlier else 0 if run.resumed_at is None else run.resumed_at + 1
        _wait_until_next(earlier)
        self._writer = SummaryWriter(str(self._folder), purge_step=purge)
        for title, values in (("config", run.config), ("facts", run.facts)):
            if values:
                text = json.dumps(plain(values), indent=2)
                self._writer.add_text(title, "    " + text.replace("\n", "\n    "), self._step)
        self._writer.flush()

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Adds a scalar for each value. Those of the step at which the run went on that are there already are left out."""
        writer = self._opened()
        there = self._names_there() if step == self._resumed_at else ()
        self._step = step
        for name, value in numbers(values).items():
            if name not in there:
                writer.add_scalar(name, value, step)

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Notes, as text, where the file lies."""
        self._opened().add_text(f"artifact/{name}", str(path), self._step)

    def finish(self, status: str) -> None:
        """Writes how the run ended and closes the file."""
        writer = self._opened()
        writer.add_text("status", status, self._step)
        writer.close()
        self._writer = None

    def state_dict(self) -> dict[str, Any]:
        """Hands what was logged so far to the system; the folder itself holds all else."""
        if self._writer is not None:
            self._writer.flush()
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes nothing: the folder holds all."""

    def _opened(self) -> Any:
        if self._writer is None:
            raise ConfigurationError(
                "the tracker was not started", do="tracker.start(run) before log, artifact, finish"
            )
        return self._writer

    def _names_there(self) -> set[str]:
        """Names of values that earlier files hold of the step at which the run went on; read once, when they are needed."""
        if self._there is None:
            self._there = _names_at(self._folder, self._step)
        return self._there


def _event_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Event files, in the order in which TensorBoard reads them."""
    return sorted(folder.glob("events.out.tfevents.*"))


def _wait_until_next(earlier: list[pathlib.Path]) -> None:
    """Returns when a new file is sure to be read after the earlier ones, whose names begin with the second they were made in.

    At most a second or two: a process that died starts again in more. Not longer, if another machine's clock is ahead.
    """
    newest = max((int(path.name.split(".")[3]) for path in earlier if path.name.split(".")[3].isdecimal()), default=0)
    for _ in range(20):
        if time.time() >= newest + 1:
            return
        time.sleep(0.1)


def _names_at(folder: pathlib.Path, step: int) -> set[str]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.compat.proto.event_pb2 import SessionLog

    names: set[str] = set()
    for path in _event_files(folder):
        for event in EventFileLoader(str(path)).Load():
            if event.session_log.status == SessionLog.START and event.step <= step:
                names.clear()  # left out from here on; what was logged again follows
            elif event.step == step:
                names |= {value.tag for value in event.summary.value}
    return names
