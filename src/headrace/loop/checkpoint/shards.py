"""Tensors that ranks hold in pieces (`DTensor`: FSDP2, tensor parallelism): how a piece is copied, written, read, put back.

Each rank knows from mesh and placements which region of the whole is its own, so saving asks nobody and loading reads
from the files only the regions that overlap with it: on any number of ranks, and never the whole on one.

Why `torch.distributed.checkpoint` does not write and read them, though the files are what it writes as
`HuggingFaceStorageWriter(save_distributed=True)`, and its `HuggingFaceStorageReader` loads them:

- What it writes by default holds a pickle (`.metadata`), and its load planner unpickles what is no tensor: reading
  would run code from the files.
- `save` gathers the plans of all ranks by collective calls. From the writing thread they would need a group of their own,
  and hang when a rank has died; here a rank that does not write is told by name.
- The writer of safetensors makes a file's bytes in memory first, a second copy of the rank's pieces.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError

if TYPE_CHECKING:
    import torch

__all__ = ["Piece", "Stored", "arranged", "header", "is_shared", "layout", "local_of", "piece_of", "stored"]

OFFSETS = "DCP_SHARDING_INFO"
"""Where `torch.distributed.checkpoint` keeps, in the header of a file, the offsets of its tensors in the whole ones."""
WHOLES = "headrace"
"""Where the header keeps shape and placements of the whole ones; a tensor that is not named there is whole itself."""

Region = tuple[tuple[int, ...], tuple[int, ...]]
"""(offsets, sizes): a box of a tensor, by dimension."""


def is_shared(value: Any) -> bool:
    """Whether a value is a tensor that ranks hold in pieces."""
    # Whoever has one has imported this; importing it takes half a second that other runs need not spend.
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def local_of(value: Any) -> torch.Tensor:
    """Returns what this rank holds of a tensor: the memory itself; a tensor that is not shared as it is."""
    import torch

    with torch.no_grad():
        return value.to_local() if is_shared(value) else value  # type: ignore[no-any-return]


def layout(tensors: Iterable[Any]) -> str | None:
    """Returns in words how tensors are divided among ranks; None: they are not."""
    found = {
        f"{' x '.join(map(str, one.device_mesh.shape))} ranks, {', '.join(map(str, one.placements))}"
        for one in tensors
        if is_shared(one)
    }
    return "; ".join(sorted(found)) or None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """What this rank holds of a tensor."""

    local: torch.Tensor
    shape: tuple[int, ...]
    """Of the whole."""
    offsets: tuple[int, ...]
    """Where in the whole it begins, by dimension."""
    placements: tuple[str, ...]
    """By dimension of the mesh: "S0" is divided along dimension 0, "R" is on each rank."""
    is_written: bool
    """Whether this rank writes it: of those that hold the same region, one does."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of its elements."""
        return self.local.dtype

    def region(self, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> torch.Tensor:
        """Returns a region of the whole, which lies within this piece."""
        starts = [start - mine for start, mine in zip(offsets, self.offsets, strict=True)]
        return self.local[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


class Stored:
    """A tensor whose pieces lie in files; its values are read when a region is asked for.

    Args:
        name: Its name in the files.
        shape: Of the whole.
        dtype: Type of its elements.
        placements: As those of `Piece`; empty: it was whole on each rank.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, placements: tuple[str, ...] = ()) -> None:
        self.name, self.shape, self.dtype, self.placements = name, shape, dtype, placements
        self._pieces: dict[Region, Any] = {}

    def add(self, offsets: tuple[int, ...], sizes: tuple[int, ...], file: Any) -> None:
        """Notes that an open file holds that region. Of replicas that hold the same, the first is read."""
        self._pieces.setdefault((offsets, sizes), file)

    def region(self, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> torch.Tensor:
        """Returns a region of the whole, in memory of its own.

        Raises:
            CheckpointError: the files do not hold all of it.
        """
        import torch

        made = torch.empty(sizes, dtype=self.dtype)
        num_read = 0
        for (starts, lengths), file in self._pieces.items():
            firsts = [max(pair) for pair in zip(starts, offsets, strict=True)]
            ends = [
                min(start + length, offset + size)
                for start, length, offset, size in zip(starts, lengths, offsets, sizes, strict=True)
            ]
            if all(first < end for first, end in zip(firsts, ends, strict=True)):
                there, here = _slices(firsts, ends, starts), _slices(firsts, ends, offsets)
                made[here] = file.get_slice(self.name)[there]
                num_read += made[here].numel()
        if num_read != made.numel():
            raise CheckpointError(
                f"the checkpoint holds {num_read:,} of the {made.numel():,} numbers of {self.name!r} that this rank needs",
                why="a piece of the tensor was not written, or is there twice",
                do="restore an older checkpoint: Checkpointer.restore(path)",
            )
        return made


def piece_of(value: Any, name: str) -> Piece:
    """Returns this rank's piece of a shared tensor. Asks no other rank, and copies nothing.

    Raises:
        CheckpointError: what ranks hold of it still has to be summed.
    """
    if any(one.is_partial() for one in value.placements):
        raise CheckpointError(
            f"{name} is a tensor of which each rank holds a summand ({value.placements})",
            why="its value is known only when the ranks have summed it",
            do="redistribute() it to Shard or Replicate, or keep it out of the state",
        )
    offsets, sizes = _region_here(value)
    local = local_of(value.detach())
    place = value.device_mesh.get_coordinate()
    # Where the mesh has replicas, the first of them writes. Of a tensor without elements the first rank does.
    is_first = place is not None and not any(
        at for at, how in zip(place, value.placements, strict=True) if how.is_replicate() or not math.prod(value.shape)
    )
    return Piece(
        local=local,
        shape=tuple(value.shape),
        offsets=offsets,
        placements=tuple(_word(one) for one in value.placements),
        is_written=is_first and (0 not in sizes or 0 in value.shape),
    )


def arranged(saved: Any, here: Any) -> Any:
    """Returns a saved value with each tensor that was saved in pieces as it belongs here; the rest is the same object.

    Args:
        saved: A nested value as `tree.join` made it.
        here: What it will replace, nested likewise: a tensor that ranks hold in pieces gets this rank's piece, every other
            one the whole. A tensor stands for all that is in `saved`: a parameter for the state of its optimizer.
    """
    if isinstance(saved, Piece | Stored):
        return _placed(saved, here)
    if not _holds_pieces(saved):
        return saved
    if isinstance(saved, Mapping):
        return type(saved)((key, arranged(value, _within(here, key))) for key, value in saved.items())  # type: ignore[call-arg]
    return type(saved)(arranged(value, _within(here, place)) for place, value in enumerate(saved))


def header(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Returns what the header of a file says of its tensors: `Piece` or whole, by name."""
    offsets = {
        name: {"saved_offsets": list(one.offsets if isinstance(one, Piece) else (0,) * one.ndim)}
        for name, one in tensors.items()
    }
    wholes = {
        name: {"shape": list(one.shape), "placements": list(one.placements)}
        for name, one in tensors.items()
        if isinstance(one, Piece)
    }
    return {OFFSETS: json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt", WHOLES: json.dumps(wholes)}


def stored(paths: Iterable[pathlib.Path], *, lazily: bool = False) -> dict[str, Any]:
    """Returns the tensors of files by name: those in pieces as `Stored`, whole ones in memory of their own.

    Args:
        paths: The files of all ranks.
        lazily: Whole ones as `Stored` too, so that a rank that needs a piece of them need not read the rest.
    """
    from safetensors import safe_open
    from safetensors.torch import _TYPES

    types: dict[str, Any] = dict(_TYPES)

    found: dict[str, Any] = {}
    for path in paths:
        file: Any = safe_open(path, framework="pt")
        said = file.metadata() or {}
        offsets, wholes = json.loads(said.get(OFFSETS, "{}")), json.loads(said.get(WHOLES, "{}"))
        for name in file.keys():  # noqa: SIM118 - no mapping: it has no other way to be gone through
            piece = file.get_slice(name)
            sizes = tuple(piece.get_shape())
            if name not in wholes and not lazily:
                found.setdefault(name, file.get_tensor(name).clone())  # else a window on a file that will be deleted
                continue
            if name not in found:
                whole = wholes.get(name, {"shape": sizes, "placements": ()})
                found[name] = Stored(name, tuple(whole["shape"]), types[piece.get_dtype()], tuple(whole["placements"]))
            at = offsets[name]["saved_offsets"] if name in offsets else (0,) * len(sizes)
            found[name].add(tuple(at), sizes, file)
    return found


def _placed(saved: Piece | Stored, here: Any) -> Any:
    import torch

    if not is_shared(here) or (saved.shape != tuple(here.shape) and not saved.placements):
        return saved.region((0,) * len(saved.shape), saved.shape)
    if saved.shape == tuple(here.shape):
        # Made like the one here, so that it lies where that does, also if that is not the device of the mesh.
        made = torch.empty_like(here, dtype=saved.dtype)
        offsets, sizes = _region_here(made)
        if 0 not in sizes:
            local_of(made).copy_(saved.region(offsets, sizes))
        return made
    # A state of another shape than its parameter's, as of a factored second moment: divided as it was.
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    mesh = here.device_mesh
    words = saved.placements if len(saved.placements) == mesh.ndim else ("R",) * mesh.ndim
    placements = [Shard(int(word[1:])) if word.startswith("S") else Replicate() for word in words]
    sizes, offsets = compute_local_shape_and_global_offset(saved.shape, mesh, placements)
    local = saved.region(tuple(offsets), tuple(sizes)).to(local_of(here).device)
    stride = torch.empty(saved.shape, device="meta").stride()
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=torch.Size(saved.shape), stride=stride)


def _region_here(value: Any) -> Region:
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    sizes, offsets = compute_local_shape_and_global_offset(value.shape, value.device_mesh, value.placements)
    if len(offsets) != value.ndim:  # a rank outside of the mesh
        return (0,) * value.ndim, (0,) * value.ndim
    return tuple(map(int, offsets)), tuple(map(int, sizes))


def _word(placement: Any) -> str:
    return f"S{placement.dim}" if type(placement).__name__ == "Shard" else "R"


def _slices(firsts: list[int], ends: list[int], offsets: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(first - offset, end - offset) for first, end, offset in zip(firsts, ends, offsets, strict=True))


def _holds_pieces(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_pieces, value.values()))
    return any(map(_holds_pieces, value)) if isinstance(value, list | tuple) else isinstance(value, Piece | Stored)


def _within(here: Any, key: Any) -> Any:
    import torch

    if here is None or isinstance(here, torch.Tensor):
        return here
    try:
        return here[key]
    except (KeyError, IndexError, TypeError):
        return None
