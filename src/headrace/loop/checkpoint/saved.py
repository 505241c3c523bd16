"""Writes one checkpoint into its folder: each rank its own part, rank 0 the manifest when all are there."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.loop.checkpoint import files
from headrace.loop.checkpoint.folder import CheckpointFolder
from headrace.loop.checkpoint.manifest import Manifest

__all__ = ["Saved", "write_checkpoint"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """One checkpoint on the disk, and what it cost."""

    path: str
    step: int
    num_bytes: int
    """Of its files, the manifest not counted."""
    pause_s: float
    """Seconds that the training stood still for it."""
    write_s: float
    """Seconds of writing, beside the training if it was done in the background."""


def write_checkpoint(
    folder: CheckpointFolder,
    manifest: Manifest,
    *,
    shared: Mapping[str, Any],
    mine: Mapping[str, Any],
    rank: int,
    is_best: bool,
    pause_s: float,
) -> Saved | None:
    """Writes, and removes what is old; returns what was written on rank 0, None on the others.

    Raises:
        CheckpointError: a value is no data.
        OSError: it cannot be written; nothing of it is left.
    """
    started = time.perf_counter()
    with folder.adding(manifest.step) as (place, done):
        records = [*files.write(place, f"rank-{rank}", mine), *files.write(place, "state", shared)]
        files.write_manifest(place, msgspec.structs.replace(manifest, files=tuple(records)))
    path = pathlib.Path(done["path"])
    if is_best:
        folder.mark_best(path)
    folder.prune()
    return Saved(
        path=os.fspath(path),
        step=manifest.step,
        num_bytes=sum(record.bytes for record in records),
        pause_s=pause_s,
        write_s=time.perf_counter() - started,
    )
