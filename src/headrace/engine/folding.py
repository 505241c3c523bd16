"""A batch of many small tensors on its way between processes: one buffer per dtype and shape, not one per tensor.

    {"a": tensor, "b": tensor, "name": text}  ──fold──▶  {"a": ..., "b": ..., "name": text}  +  block of 2 rows

Pickling a tensor costs about 10 microseconds, and unpickling it 3, whatever its size. A folded batch costs that once
per block (see `engine.blocks`), and the pickle of its skeleton, in which an Ellipsis stands where a tensor was.

Only what arrives just as it would in the plain way is folded: plain dicts, lists and tuples of contiguous tensors and
arrays, numbers and text, each object in one place. Everything else travels as it is.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine import blocks
from headrace.engine.blocks import LEAST_FIELDS, MOST_BYTES, BlockKind

__all__ = ["fold"]

_LEAVES = frozenset({str, bytes, int, float, bool, type(None)})
"""What needs no care: whether two of them are one object is nobody's business."""
_CONTAINERS = frozenset({dict, list, tuple})
_MOST_PARTS = 4096
"""Parts of a container above which it is no record of fields but a list of values, and looking at each is waste."""
_HOLE = ...


def fold(value: Any) -> Any:
    """Returns a stand-in for a value, to be pickled by protocol 5 in its place, which unpickles as the value does.

    Returns the value itself if it does not hold at least `LEAST_FIELDS` small arrays or tensors of one kind, or
    something that is not known to arrive the same. Cost: 1 us for a batch of two tensors; for many, one copy.
    """
    if type(value) not in _CONTAINERS:
        return value
    arrays: list[Any] = []
    # A worker that needs no torch must not load it.
    tensor = getattr(sys.modules.get("torch"), "Tensor", np.ndarray)
    if not _collect(value, tensor, arrays, set()) or len(arrays) < LEAST_FIELDS:
        return value
    if len(set(map(id, arrays))) < len(arrays):
        return value  # one object in two places arrives as one object
    groups = []
    for kind, places in blocks.groups_of(arrays).items():
        members = [arrays[place] for place in places]
        is_worth_it = len(places) >= LEAST_FIELDS and _is_foldable(kind, members)
        block = blocks.join(kind, members) if is_worth_it else None
        if block is not None:
            groups.append((kind, places, np.ascontiguousarray(block)))
    if not groups:
        return value
    inside = {id(arrays[place]) for _, places, _ in groups for place in places}
    return _Folded(_skeleton(value, inside), groups)


def _collect(container: Any, tensor: type, arrays: list[Any], containers: set[int]) -> bool:
    """Appends all arrays and tensors in the order in which they stand; False if there is anything else to care for."""
    is_dict = type(container) is dict
    if id(container) in containers or len(container) > _MOST_PARTS:
        return False
    if is_dict and not _LEAVES.issuperset(map(type, container)):
        return False
    containers.add(id(container))
    for part in container.values() if is_dict else container:
        kind = type(part)
        if kind is tensor or kind is np.ndarray:
            arrays.append(part)
        elif kind not in _LEAVES and not (kind in _CONTAINERS and _collect(part, tensor, arrays, containers)):
            return False
    return True


def _is_foldable(kind: BlockKind, members: list[Any]) -> bool:
    """True if these are small, and arrive with the layout that they have: contiguous, without a gradient."""
    # Without axes the rows of a block would be numbers; without elements there is nothing to gain.
    if len(kind.shape) == 0 or not 0 < kind.num_bytes <= MOST_BYTES:
        return False
    if kind.type is np.ndarray:
        return all(array.flags.c_contiguous for array in members)
    return all(tensor.is_contiguous() and not tensor.requires_grad for tensor in members)


def _skeleton(value: Any, inside: set[int]) -> Any:
    """The containers anew, with holes."""
    if type(value) is dict:
        return {key: _HOLE if id(part) in inside else _skeleton(part, inside) for key, part in value.items()}
    if type(value) in _CONTAINERS:
        return type(value)([_HOLE if id(part) in inside else _skeleton(part, inside) for part in value])
    return value


class _Folded:
    def __init__(self, skeleton: Any, groups: list[tuple[BlockKind, list[int], npt.NDArray[Any]]]) -> None:
        self._skeleton = skeleton
        self._groups = groups

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        groups = [
            (kind.type is np.ndarray, block.dtype.char, tuple(kind.shape), places, pickle.PickleBuffer(block.data))
            for kind, places, block in self._groups
        ]
        return _unfold, (self._skeleton, groups)


def _unfold(skeleton: Any, groups: list[tuple[bool, str, tuple[int, ...], list[int], Any]]) -> Any:
    """Returns the value; its arrays and tensors are rows of the received blocks, and writable."""
    arrays: dict[int, Any] = {}
    for is_array, char, shape, places, buffer in groups:
        block = np.frombuffer(buffer, char).reshape(len(places), *shape)
        arrays.update(zip(places, block if is_array else blocks.tensors(block), strict=True))
    return _fill(skeleton, iter([arrays[place] for place in sorted(arrays)]))


def _fill(skeleton: Any, arrays: Iterator[Any]) -> Any:
    if type(skeleton) is dict:
        return {key: next(arrays) if part is _HOLE else _fill(part, arrays) for key, part in skeleton.items()}
    if type(skeleton) in _CONTAINERS:
        return type(skeleton)([next(arrays) if part is _HOLE else _fill(part, arrays) for part in skeleton])
    return skeleton
