"""Loads the files of a checkpoint into the parts of a run, and says what could not be brought back."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from headrace.loop.checkpoint import files
from headrace.loop.checkpoint.manifest import Manifest
from headrace.loop.checkpoint.parts import Part
from headrace.loop.checkpoint.ranks import Ranks

__all__ = ["Loaded", "load_parts"]

OWN_BUFFERS = ("own_buffers", "extra_own_buffers")
"""Parts that hold the buffers of which each rank has its own."""


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What became of the parts of a run."""

    lost: tuple[str, ...]
    """What is not as it was, and cannot be."""
    begun_anew: tuple[str, ...]
    """Random state of ranks that were not there: the data are the same, later bits are not."""
    random: Any
    """Random state of this rank; None: it has none in this checkpoint."""


def load_parts(
    parts: Sequence[Part], path: pathlib.Path, manifest: Manifest, ranks: Ranks, *, is_sharded: bool
) -> Loaded:
    """Loads them in their order from a checkpoint that was found good.

    Args:
        parts: All parts of the run.
        path: Folder of the checkpoint.
        manifest: Its manifest.
        ranks: The ranks that go on; there may be more or fewer than those that saved.
        is_sharded: Ranks share parameters: the pieces of this rank are read when they are loaded, not the whole before.

    Raises:
        StateMismatch: a part is of another model, optimizer or loader.
    """
    is_same_number = ranks.world_size == manifest.world_size
    was_there = ranks.rank < manifest.world_size
    shared = files.read(path, "state", lazily=is_sharded)
    mine = files.read(path, f"rank-{ranks.rank if was_there else 0}")
    lost = [] if is_same_number else _own_buffers_lost(path, manifest.world_size)
    begun_anew = []
    for part in parts:
        state = (mine if part.is_per_rank else shared).get(part.name)
        if part.name in OWN_BUFFERS and (state is None or not is_same_number):
            continue  # those of rank 0 came with the model
        if state is None:
            lost.append(f"{part.name}: not in this checkpoint")
        elif part.name == "metrics" and not is_same_number:
            lost.append(
                f"metrics begin anew: each of {manifest.world_size} ranks had counted its own samples, and there are "
                f"{ranks.world_size}"
            )
        elif part.name == "random" and not was_there:
            begun_anew.append(f"random state of rank {ranks.rank} begins anew: {manifest.world_size} ranks were saved")
        else:
            lost += part.load(state)
    return Loaded(tuple(lost), tuple(begun_anew), mine.get("random") if was_there else None)


def _own_buffers_lost(path: pathlib.Path, world_size: int) -> list[str]:
    """What is lost of buffers that were each rank's own, if other ranks than those that saved them go on."""
    import torch

    states = [files.read(path, f"rank-{rank}") for rank in range(world_size)]
    return [
        f"{name!r} was another on each rank: that of rank 0 is taken"
        for part in OWN_BUFFERS
        for name, first in states[0].get(part, {}).items()
        if not all(torch.equal(first, state[part][name]) for state in states)
    ]
