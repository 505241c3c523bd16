"""Weights & Biases: online, or in the folder of the run until it is sent."""

from __future__ import annotations

import contextlib
import netrc
import os
import pathlib
import re
import secrets
import socket
import urllib.parse
import urllib.request
import warnings
from collections.abc import Mapping
from typing import Any

from headrace.errors import ConfigurationError, TrackerWarning
from headrace.loop.trackers.history import History
from headrace.loop.trackers.plain import numbers, plain
from headrace.loop.trackers.required import require
from headrace.loop.trackers.tracker import RunInfo

__all__ = ["WandB"]

_OPEN: dict[str, Any] = {}
"""W&B's runs of this process that were not finished, by id: it refuses to open one twice, as a notebook may ask for."""


class WandB:
    """Logs to Weights & Biases: one row for each call, with the step as a value and as the axis of all charts.

    Without an API key, or where the server cannot be reached, the run is kept in the folder of the run, a warning says so,
    and `wandb sync` sends it later.

    W&B writes in a process of its own, and a kill takes rows with it that it was given seconds before. So what is logged is
    also kept in `wandb/given-<id>.jsonl`, and a run that goes on gives W&B what it lacks: online, the rows behind the last one
    that arrived; offline, all of them, as a new local run of the same id, and what the killed one wrote is moved to
    `wandb/replaced`, so that each row is sent once.

    `wandb.run` stays what the program made it; the run of this tracker is another one.

    Args:
        project: Name of the project.
        entity: User or team. Default: the one of the API key.
        mode: "online", "offline", "disabled". Default: WANDB_MODE; else online if there is a key and a way to the server.

    Raises:
        MissingExtra: wandb is not installed.
    """

    name = "wandb"

    def __init__(self, project: str, *, entity: str | None = None, mode: str | None = None) -> None:
        require("wandb", "the Weights & Biases tracker")
        self._project = project
        self._entity = entity
        self._mode = mode
        self._id = secrets.token_hex(4)
        self._run: Any = None
        self._history: History | None = None
        self._resumed_at: int | None = None
        self._arrived = -1

    def start(self, run: RunInfo) -> None:
        """Makes a run, or goes on with it, and gives W&B what a kill took."""
        import wandb

        if (forgotten := _OPEN.pop(self._id, None)) is not None:
            forgotten.finish(exit_code=1)
        place = run.folder / "wandb"
        self._resumed_at = run.resumed_at
        self._history = History(place / f"given-{self._id}.jsonl")
        self._history.open(run.resumed_at)
        mode = self._mode or os.environ.get("WANDB_MODE") or _mode_here(place)
        if mode == "offline":
            _set_aside(place, self._id)
        self._run = wandb.init(
            project=self._project,
            entity=self._entity,
            id=self._id,
            name=run.name,
            dir=str(run.folder),
            mode=mode,
            resume="allow" if mode == "online" else None,
            reinit="create_new",
        )
        _OPEN[self._id] = self._run
        self._run.config.update(plain({**run.config, "facts": run.facts}), allow_val_change=True)
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")
        if self._run.resumed:
            self._arrived = int(self._run.summary.get("step", -1))
        for row in self._history.rows():
            self._give_again(row)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Gives W&B a row, unless a killed attempt did."""
        active, history = self._started()
        found = numbers(values)
        if step == self._resumed_at:
            found = {name: value for name, value in found.items() if name not in history.names_there}
        if not found:
            return
        history.append({"step": step, **found})
        if step > self._arrived or step == self._resumed_at:
            active.log({"step": step, **found})

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Has W&B keep a copy of a file."""
        _, history = self._started()
        history.append({"artifact": name, "path": str(path.resolve())})
        self._give_file(path, name)

    def finish(self, status: str) -> None:
        """Ends the run: online, everything has arrived; offline, W&B's process writes the rest within moments."""
        active, history = self._started()
        history.close()
        _OPEN.pop(self._id, None)
        active.finish(exit_code=0 if status == "finished" else 1)
        self._run = None

    def state_dict(self) -> dict[str, Any]:
        """Returns the id of W&B's run; what was logged so far is put on the disk."""
        if self._history is not None:
            self._history.sync()
        return {"run_id": self._id}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the id of the run to go on with."""
        self._id = state.get("run_id", self._id)

    def _give_again(self, row: Mapping[str, Any]) -> None:
        if row.get("step", -1) > self._arrived:
            self._run.log({name: float(value) if isinstance(value, str) else value for name, value in row.items()})
        elif "artifact" in row and self._arrived < 0 and pathlib.Path(row["path"]).exists():
            self._give_file(pathlib.Path(row["path"]), row["artifact"])

    def _give_file(self, path: pathlib.Path, name: str) -> None:
        import wandb

        kept = wandb.Artifact(re.sub(r"[^\w\-.]", "-", name)[:128], type="file")
        kept.add_file(str(path), name=name)
        self._run.log_artifact(kept)

    def _started(self) -> tuple[Any, History]:
        if self._run is None or self._history is None:
            raise ConfigurationError(
                "the tracker was not started", do="tracker.start(run) before log, artifact, finish"
            )
        return self._run, self._history


def _mode_here(place: pathlib.Path) -> str:
    """Online, if that can work; says so once if not."""
    import wandb

    settings = wandb.setup().settings
    if settings.mode != "online":  # `wandb offline` in this folder
        return str(settings.mode)
    server = urllib.parse.urlsplit(settings.base_url)
    keys = settings.api_key, os.environ.get("WANDB_API_KEY"), os.environ.get("WANDB_IDENTITY_TOKEN_FILE")
    if not any(keys) and not _is_in_netrc(server.hostname or ""):
        lack = "there is no API key (wandb login)"
    elif not _is_reached(server):
        lack = f"{server.hostname} cannot be reached"
    else:
        return "online"
    warnings.warn(
        f"Weights & Biases keeps this run in {place} only: {lack}; `wandb sync {place}/offline-run-*` sends it later",
        TrackerWarning,
        stacklevel=3,
    )
    return "offline"


def _is_in_netrc(host: str) -> bool:
    given = os.environ.get("NETRC")
    for path in [pathlib.Path(given)] if given else [pathlib.Path.home() / ".netrc", pathlib.Path.home() / "_netrc"]:
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            if host in netrc.netrc(path).hosts:
                return True
    return False


def _is_reached(server: urllib.parse.SplitResult) -> bool:
    """Whether something answers: W&B itself would try for a minute and a half, and then fail."""
    proxy = urllib.request.getproxies().get(server.scheme)
    if proxy and not urllib.request.proxy_bypass(server.hostname or ""):
        server = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    port = server.port or (80 if server.scheme == "http" else 443)
    try:
        socket.create_connection((server.hostname or "", port), timeout=5).close()
    except OSError:
        return False
    return True


def _set_aside(place: pathlib.Path, run_id: str) -> None:
    """Moves the local runs of that id, whose rows are all given again, to where `wandb sync` does not look."""
    for old in place.glob(f"offline-run-*-{run_id}"):
        aside = place / "replaced" / old.name
        aside.parent.mkdir(exist_ok=True)
        while aside.exists():
            aside = aside.with_name(f"{aside.name}-again")
        old.rename(aside)
