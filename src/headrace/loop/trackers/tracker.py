"""The seam between a run and what keeps its history: four methods, and a state that rides in the checkpoint."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["RunInfo", "Tracker"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What is logged once, when a run starts or goes on."""

    name: str
    """Of the run, for people."""
    folder: pathlib.Path
    """Where the run keeps its files; a tracker that writes files writes them there, if it is not told another place."""
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings, as plain values, nested at will."""
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Environment, version of the data, contract, verdict of the doctor, summary of the model: plain values."""
    resumed_at: int | None = None
    """Optimizer steps done, if the run goes on from a checkpoint. None: it begins."""
    num_steps: int | None = None
    """Optimizer steps of the whole run, if no batch is skipped. None: not known."""


class Tracker(Protocol):
    """Keeps the history of one run. Only rank 0 has any.

    A history has neither gaps nor repeats, however often the run is killed and goes on: values of steps that a checkpoint
    did not keep are logged again, and must stand in the history once.
    """

    @property
    def name(self) -> str:
        """jsonl, mlflow, ...: for messages."""
        ...

    def start(self, run: RunInfo) -> None:
        """The run begins, or goes on behind `run.resumed_at`. Called once, after `load_state_dict` if there is a state."""
        ...

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Keeps values of a step: numbers by name. Steps do not decrease within one process."""
        ...

    def artifact(self, path: pathlib.Path, name: str) -> None:
        """Keeps a file under a name."""
        ...

    def finish(self, status: str) -> None:
        """The run is over: "finished", "failed" or "killed". Everything is where it belongs when this returns."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Returns what is needed to go on with the same run in another process: its id, ...; plain values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes what `state_dict` returned, before `start`."""
        ...
