"""Kept samples joined into a batch at once: each row is copied once, from the store into the batch.

The same batch as reading the samples one by one and joining them by torch's rules; what these rules do not join in a
plain way (other shapes, None, empty arrays, ...) is left to them by `NotGathered`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.batch_memory import batch_memory
from headrace.engine.cache.entry import View, runs
from headrace.engine.cache.packing import Node, parsed
from headrace.engine.source.gathering import GATHERED_DTYPES, NotGathered

__all__ = ["join", "join_alike"]

Bytes = npt.NDArray[np.uint8]
Copy = Callable[[Bytes, Sequence[int]], None]
"""Fills memory (B, bytes), given for each row the place of its bytes in its block."""

ROW_BYTES = 2048
"""From here on copying row by row is as fast as one gather of all, and needs no memory in between."""


def join(views: Sequence[View]) -> Any:
    """Returns what torch's `default_collate` makes of the samples of B entries, each of a form of its own.

    Raises:
        NotGathered: they are not of one plain form.
    """

    def copy(memory: Bytes, offsets: Sequence[int]) -> None:
        for row, (view, offset) in enumerate(zip(views, offsets, strict=True)):
            memory[row] = view.block[offset : offset + memory.shape[1]]

    return _Join(copy).of([parsed(view.layout) for view in views])


def join_alike(layout: bytes, data: Bytes, places: npt.NDArray[np.int64]) -> Any:
    """Returns the same for samples of one form.

    Args:
        layout: Text of the form.
        data: Where the blocks lie.
        places: (B,) where each begins.

    Raises:
        NotGathered: the form is no plain one.
    """

    def copy(memory: Bytes, offsets: Sequence[int]) -> None:
        begins, size = places + offsets[0], memory.shape[1]
        if size < ROW_BYTES:
            memory[:] = runs(data, size)[begins]
            return
        for row, begin in enumerate(begins.tolist()):
            memory[row] = data[begin : begin + size]

    return _Join(copy).of([parsed(layout)], len(places))


class _Join:
    """Makes a batch of the forms of its samples; one form stands for many samples that have it in common."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._num_samples = 0
        self._fills: list[tuple[Bytes, Sequence[int]]] = []

    def of(self, nodes: Sequence[Node], num_samples: int | None = None) -> Any:
        """Returns the batch; nothing is copied before all of it is known to be plain."""
        self._num_samples = num_samples or len(nodes)
        batch = self._joined(nodes)
        for memory, offsets in self._fills:
            self._copy(memory, offsets)
        return batch

    def _joined(self, nodes: Sequence[Node]) -> Any:
        kind = nodes[0][0]
        if any(node[0] != kind for node in nodes):
            raise NotGathered
        if kind == "d":
            keys = [key for key, _ in nodes[0][1]]
            if any([key for key, _ in node[1]] != keys for node in nodes):
                raise NotGathered
            return {key: self._joined([node[1][place][1] for node in nodes]) for place, key in enumerate(keys)}
        if kind in {"t", "l"}:
            length = len(nodes[0][1])
            if not length or any(len(node[1]) != length for node in nodes):
                raise NotGathered
            parts = [(nodes[0][1][place][0], [node[1][place] for node in nodes]) for place in range(length)]
            # Collate leaves text in the tuples that `zip` made of it.
            return [tuple(self._joined(part)) if kind in {"s", "y"} else self._joined(part) for kind, part in parts]
        if kind == "s":
            texts = [node[1] for node in nodes]
            return texts if len(texts) == self._num_samples else texts * self._num_samples
        if kind == "y":
            return self._bytes(nodes)
        if kind in {"i", "f"}:
            return self._filled((), np.dtype(np.int64 if kind == "i" else np.float64), [node[1] for node in nodes])
        if kind in {"a", "T"}:
            return self._arrays(nodes)
        raise NotGathered

    def _bytes(self, nodes: Sequence[Node]) -> list[bytes]:
        if any(node[1] != nodes[0][1] for node in nodes) or not nodes[0][1]:
            raise NotGathered
        memory = np.empty((self._num_samples, nodes[0][1]), np.uint8)
        self._copy(memory, [node[2] for node in nodes])
        return [row.tobytes() for row in memory]

    def _arrays(self, nodes: Sequence[Node]) -> Any:
        import torch

        kind, name, shape, _ = nodes[0]
        if not math.prod(shape) or any(node[1] != name or node[2] != shape for node in nodes):
            raise NotGathered
        offsets = [node[3] for node in nodes]
        if kind == "T":  # through bytes, because numpy has no bfloat16
            dtype = getattr(torch, name)
            flat = self._filled((math.prod(shape) * dtype.itemsize,), np.dtype(np.uint8), offsets)
            return flat.view(-1).view(dtype).view(self._num_samples, *shape)
        plain = np.dtype(name)
        if plain.char not in GATHERED_DTYPES or not plain.isnative:
            raise NotGathered
        return self._filled(tuple(shape), plain, offsets)

    def _filled(self, shape: tuple[int, ...], dtype: np.dtype[Any], offsets: Sequence[int]) -> Any:
        """Returns a tensor (B, *shape), and enters that its memory is to be filled."""
        import torch

        memory = batch_memory((self._num_samples, *shape), dtype)
        self._fills.append((memory.reshape(-1).view(np.uint8).reshape(self._num_samples, -1), offsets))
        return torch.from_numpy(memory)
