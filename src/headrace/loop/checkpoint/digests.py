"""What a state is, in sixteen bytes for each of its items: enough to say whether two states are the same, and where not."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from headrace.loop.checkpoint import tree
from headrace.loop.checkpoint.parts import Part
from headrace.loop.checkpoint.shards import Piece

__all__ = ["Digests", "digests", "first_difference"]

Digests = list[tuple[str, bytes]]
"""(name, digest) of each item."""


def digests(parts: Iterable[Part]) -> Digests:
    """Returns name, `model.fc.weight`, and digest of each item of some parts, in order.

    Two items have the same digest if they are the same to the last bit; every NaN of plain Python is the same one.

    Cost: one pass over the state, and a copy of one tensor at a time where it lies on a device.

    Raises:
        CheckpointError: an item is no data.
    """
    return [
        (".".join(map(str, (part.name, *path))), _digest(value))
        for part in parts
        for path, value in tree.leaves(part.state())
    ]


def first_difference(one: Digests, other: Digests) -> str | None:
    """Returns the name of the first item that differs, or that only one of two states has; None: they are the same."""
    for mine, theirs in itertools.zip_longest(one, other):
        if mine != theirs:
            return str((mine or theirs)[0])
    return None


def _digest(value: Any) -> bytes:
    import torch
    import xxhash

    skeleton, tensors = tree.split(value, "item")
    found = xxhash.xxh3_128(json.dumps(skeleton).encode())
    for tensor in tensors.values():
        held = tensor.local if isinstance(tensor, Piece) else tensor
        plain = held.resolve_conj().resolve_neg().cpu().contiguous()
        found.update(f"{plain.dtype} {tuple(plain.shape)}".encode())
        found.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return found.digest()
