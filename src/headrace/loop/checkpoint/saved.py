"""Writes one checkpoint into its folder: each rank its own part, rank 0 the manifest when all are there."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Mapping

import msgspec

from headrace.errors import CheckpointError
from headrace.loop.checkpoint import files
from headrace.loop.checkpoint.folder import CheckpointFolder
from headrace.loop.checkpoint.manifest import FileRecord, Manifest
from headrace.loop.checkpoint.tree import Split

__all__ = ["Saved", "write_checkpoint", "write_part"]

DONE = ".done"
"""Ending of the note with which a rank says that its part is there."""
PATIENCE_S = 600.0


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
    word: str,
    shared: Mapping[str, Split],
    mine: Mapping[str, Split],
    is_best: bool,
    pause_s: float,
) -> Saved:
    """Writes rank 0's part, waits for those of the others, gives the checkpoint its name, and removes what is old.

    Args:
        folder: The run's.
        manifest: What it is; its files are filled in here.
        word: Of this attempt, the same on every rank.
        shared: Parts that all ranks have in common.
        mine: Parts of rank 0.
        is_best: Whether it becomes the best one.
        pause_s: Seconds that the training stood still for it so far.

    Raises:
        CheckpointError: another rank did not write its part.
        OSError: it cannot be written; nothing of it is left.
    """
    started = time.perf_counter()
    with folder.adding(manifest.step, word) as (place, done):
        records = [
            *files.write_split(place, "rank-0", mine),
            *files.write_split(place, "state", shared),
            *files.write_pieces(place, 0, {**mine, **shared}, with_whole=shared),
        ]
        for rank in range(1, manifest.world_size):
            records += _part_of(place, rank)
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


def write_part(
    folder: CheckpointFolder, *, word: str, shared: Mapping[str, Split], mine: Mapping[str, Split], rank: int
) -> None:
    """Writes the part of another rank than 0, and says that it is there.

    Args:
        folder: The run's.
        word: Of this attempt, the same on every rank.
        shared: Parts that all ranks have in common, of which its pieces of tensors are written.
        mine: Parts of this rank.
        rank: The rank.

    Raises:
        OSError: it cannot be written.
    """
    place = folder.place(word)
    try:
        records = [
            *files.write_split(place, f"rank-{rank}", mine),
            *files.write_pieces(place, rank, {**mine, **shared}),
        ]
        said = msgspec.json.encode(records)
    except Exception as error:
        said = msgspec.json.encode(f"{type(error).__name__}: {error}")
        raise
    finally:
        # Renamed, so that nobody reads half of it.
        new = place / f"rank-{rank}.new"
        new.write_bytes(said)
        new.rename(place / f"rank-{rank}{DONE}")


def _part_of(place: pathlib.Path, rank: int) -> list[FileRecord]:
    """The files of another rank, when it has written them.

    The folder is the only thing that ranks have in common here: a collective call from this thread could meet those of
    the training in another order on another rank.
    """
    note, deadline = place / f"rank-{rank}{DONE}", time.monotonic() + PATIENCE_S
    while not note.exists():
        if time.monotonic() > deadline:
            raise CheckpointError(
                f"rank {rank} has not written its part of the checkpoint to {place} for {PATIENCE_S:g} s",
                why="it has ended, or its folder is not this one: ranks must see the same file system",
            )
        time.sleep(0.01)
    said = msgspec.json.decode(note.read_bytes())
    note.unlink()
    if isinstance(said, str):
        raise CheckpointError(f"rank {rank} could not write its part of the checkpoint: {said}")
    return msgspec.convert(said, list[FileRecord])
