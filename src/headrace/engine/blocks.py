"""Many small arrays as one block of memory: joined in one call, and cut into rows again.

A call of torch or numpy costs about a microsecond whatever its size, several times what it takes to copy some hundred
bytes. So where a batch has many small fields, those of equal dtype and shape are treated as one: joined into a block
in one call, sent as one buffer, and only then cut into the fields that the loop sees.

A row cut from a block is an array or a tensor in its own right: exactly its own elements, writable, with a storage of
its own size, so that saving one saves nothing beside it and no field reaches into another. What they share is the
memory's lifetime: while one row lives, so does the block. That is why only small fields are put together, at most
`MOST_BYTES` each.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_FIELDS", "MOST_BYTES", "BlockKind", "groups_of", "join", "tensors"]

LEAST_FIELDS = 8
"""Fields of one kind from which a block is worth it: below, finding them costs about what it saves."""
MOST_BYTES = 1 << 14
"""Bytes of a field above which copying outweighs the call, and above which a kept field would keep much beside it."""

_NUMBERS: dict[type, npt.DTypeLike] = {int: np.int64, float: np.float64, bool: np.bool_}
"""What torch's default rules make of Python's own numbers."""
_CHARACTERS = frozenset("?bBhHiIlLqQefdFD")
"""numpy's characters for the dtypes that torch has as well."""


class BlockKind(NamedTuple):
    """What values must have in common to be joined; hashable."""

    type: type
    """torch.Tensor, numpy.ndarray, int, float or bool; never a subclass, which may have rules of its own."""
    dtype: Any
    """torch's or numpy's; None for numbers."""
    shape: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """False for an array's dtype that torch does not have."""
        return self.type is not np.ndarray or (self.dtype.isnative and self.dtype.char in _CHARACTERS)

    @property
    def num_bytes(self) -> int:
        """Bytes of one value."""
        return math.prod(self.shape) * (8 if self.dtype is None else int(self.dtype.itemsize))


def groups_of(values: Iterable[Any]) -> dict[BlockKind, list[int]]:
    """Returns the places of the values that may go together, by kind; what never goes into a block is left out."""
    # A value can only be a tensor if someone has imported torch; a worker that needs no torch must not load it.
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, value in enumerate(values):
        kind = type(value)
        if kind is tensor or kind is np.ndarray:
            places.setdefault((kind, value.dtype, value.shape), []).append(place)
        elif kind in _NUMBERS:
            places.setdefault((kind, None, ()), []).append(place)
    groups = {BlockKind(*kind): found for kind, found in places.items()}
    return {kind: found for kind, found in groups.items() if kind.is_plain}


def join(kind: BlockKind, values: Sequence[Any]) -> npt.NDArray[Any] | None:
    """Returns N values under one another, (N, *shape), in memory of their own; None if one is not of that kind.

    The first of each field must be known to be of that kind. Whatever is refused here, the caller joins the plain way.
    """
    try:
        return _join_tensors(kind, values) if kind.type not in _FROM_LISTS else _join_list(kind, values)
    # Values that do not join raise any of these; so do tensors that numpy cannot see: with gradients, on a device, sparse.
    except (TypeError, ValueError, RuntimeError):
        return None


_FROM_LISTS = frozenset({np.ndarray, *_NUMBERS})


def _join_list(kind: BlockKind, values: Sequence[Any]) -> npt.NDArray[Any] | None:
    if set(map(type, values)) != {kind.type}:
        return None
    if kind.type is np.ndarray and {value.dtype for value in values} != {kind.dtype}:
        return None  # numpy would convert, by other rules than torch's
    block = np.array(values)
    dtype = _NUMBERS.get(kind.type, kind.dtype)
    return block if block.dtype == dtype and block.shape[1:] == kind.shape else None


def _join_tensors(kind: BlockKind, values: Sequence[Any]) -> npt.NDArray[Any] | None:
    import torch

    if torch.overrides.has_torch_function(values):
        return None  # somebody's own kind of tensor, which may join in its own way
    block = torch.stack(list(values))  # refuses unequal shapes
    # Dtypes are not compared one by one. torch converts to the least dtype that holds all; if that is the dtype of the
    # first of each field, it is also the least that holds that field, to which joining the field alone would convert.
    return block.numpy() if block.dtype is kind.dtype else None


def tensors(block: npt.NDArray[Any]) -> Iterator[Any]:
    """Returns the rows of a block as tensors, each with a storage and a version counter of its own."""
    import torch

    # Not `unbind`: its results are views of one tensor, which autograd watches as one, and `torch.save` writes as one.
    return map(torch.from_numpy, block)
