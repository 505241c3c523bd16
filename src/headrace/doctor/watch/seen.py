"""What one process saw, on its way from the watched script to the watcher: a file for each process, in a private folder.

The files are pickles between two processes of ours; the folder can be read and written by this user only.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import pickle

from headrace.doctor.evidence import Evidence

__all__ = ["Seen", "read_seen", "write_seen"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Evidence of one process."""

    process: int
    """Its number in the operating system."""
    rank: int
    world_size: int
    outcome: str
    """`running`, `finished`, `interrupted`, `failed`."""
    wall_s: float
    num_batches: int
    num_steps: int
    has_torch: bool
    evidence: tuple[Evidence, ...]


def write_seen(folder: pathlib.Path, seen: Seen) -> None:
    """Writes it whole or not at all."""
    path = folder / f"{seen.process}.seen"
    part = folder / f"{seen.process}.part"
    part.write_bytes(pickle.dumps(seen))
    os.replace(part, path)  # noqa: PTH105 - the word says that it is atomic


def read_seen(folder: pathlib.Path) -> list[Seen]:
    """Returns what the processes wrote, ranks in order and the busiest first; files that cannot be read are left out."""
    found = []
    for path in sorted(folder.glob("*.seen")):
        try:
            found.append(pickle.loads(path.read_bytes()))
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
            continue
    return sorted(found, key=lambda seen: (seen.rank, -seen.num_batches, -seen.num_steps, seen.process))
