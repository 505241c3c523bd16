"""Kept samples joined into a batch at once: each row is copied once, from the store into the batch.

The same batch as reading the samples one by one and joining them by torch's rules; what these rules do not join in a
plain way (other shapes, None, empty arrays, ...) is left to them by `NotGathered`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.cache.entry import View
from headrace.engine.cache.packing import Node, parsed
from headrace.engine.source.gathering import GATHERED_DTYPES, NotGathered

__all__ = ["join"]

Fill = tuple[npt.NDArray[np.uint8], Sequence[int]]
"""Memory of a batch as (B, bytes), and for each row the place of its bytes in its block."""


def join(views: Sequence[View]) -> Any:
    """Returns what torch's `default_collate` makes of the samples of B entries.

    Raises:
        NotGathered: they are not of one plain form.
    """
    fills: list[Fill] = []
    batch = _join([parsed(view.layout) for view in views], views, fills)
    for row, view in enumerate(views):
        for memory, offsets in fills:
            memory[row] = view.block[offsets[row] : offsets[row] + memory.shape[1]]
    return batch


def _join(nodes: Sequence[Node], views: Sequence[View], fills: list[Fill]) -> Any:
    """Returns the batch of one part of the samples, and enters which memory is still to be filled."""
    kind = nodes[0][0]
    if any(node[0] != kind for node in nodes):
        raise NotGathered
    if kind == "d":
        keys = [key for key, _ in nodes[0][1]]
        if any([key for key, _ in node[1]] != keys for node in nodes):
            raise NotGathered
        return {key: _join([node[1][place][1] for node in nodes], views, fills) for place, key in enumerate(keys)}
    if kind in {"t", "l"}:
        length = len(nodes[0][1])
        if not length or any(len(node[1]) != length for node in nodes):
            raise NotGathered
        return [_join([node[1][place] for node in nodes], views, fills) for place in range(length)]
    if kind == "s":
        return [node[1] for node in nodes]
    if kind == "y":
        return [view.block[node[2] : node[2] + node[1]].tobytes() for node, view in zip(nodes, views, strict=True)]
    if kind in {"i", "f"}:
        dtype = np.int64 if kind == "i" else np.float64
        return _to_fill(np.empty(len(nodes), dtype), [node[1] for node in nodes], fills)
    if kind in {"a", "T"}:
        return _join_arrays(nodes, fills)
    raise NotGathered


def _join_arrays(nodes: Sequence[Node], fills: list[Fill]) -> Any:
    import torch

    kind, name, shape, _ = nodes[0]
    if not math.prod(shape) or any(node[1] != name or node[2] != shape for node in nodes):
        raise NotGathered
    offsets = [node[3] for node in nodes]
    if kind == "T":
        batch = torch.empty((len(nodes), *shape), dtype=getattr(torch, name))
        _to_fill(batch.view(-1).view(torch.uint8).numpy(), offsets, fills, num_rows=len(nodes))
        return batch
    dtype = np.dtype(name)
    if dtype.char not in GATHERED_DTYPES or not dtype.isnative:
        raise NotGathered
    return _to_fill(np.empty((len(nodes), *shape), dtype), offsets, fills)


def _to_fill(memory: Any, offsets: Sequence[int], fills: list[Fill], num_rows: int | None = None) -> Any:
    """Enters memory to be filled, one row from each view, and returns it as a tensor."""
    import torch

    fills.append((memory.reshape(-1).view(np.uint8).reshape(num_rows or len(memory), -1), offsets))
    return torch.from_numpy(memory)
