"""Keeps a batch that failed: who was in it and what it was, so that the failure can be looked at again."""

from __future__ import annotations

import contextlib
import json
import pathlib
from typing import Any

from headrace.errors import CheckpointError
from headrace.loop.checkpoint import files
from headrace.loop.step import Step

__all__ = ["keep_batch", "load_batch"]


def keep_batch(folder: pathlib.Path, step: Step, reason: str) -> pathlib.Path:
    """Writes the batch of a step, as data, and the identities of its samples; returns where to.

    A batch that is no data (objects of one's own) is left out; the identities are written all the same.
    """
    place = folder / "failed" / f"step-{step.number:09d}"
    place.mkdir(parents=True, exist_ok=True)
    note = {"reason": reason, "epoch": step.epoch, "step": step.number, "sample_ids": step.ids and list(step.ids)}
    (place / "note.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    with contextlib.suppress(CheckpointError):
        files.write(place, "state", {"batch": step.batch})
    return place


def load_batch(place: pathlib.Path | str) -> Any:
    """Returns the batch that `keep_batch` wrote.

    Raises:
        CheckpointError: it was no data, and could not be kept.
    """
    return files.read(pathlib.Path(place), "state")["batch"]
