"""A sample as bytes: a short text that says its form, and one block that holds its arrays and numbers.

Only forms that come back exactly as they were: dicts, tuples and lists of numpy arrays, torch tensors, numbers,
strings, bytes, True, False and None. Nothing is ever pickled, because files of a cache may come from elsewhere.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["ALIGNMENT", "Node", "Packed", "Unpackable", "pack", "parsed", "unpack"]

ALIGNMENT = 64
"""Bytes; a cache line, and enough for any dtype."""

Node = list[Any]
"""Kind, then what the kind needs, JSON all through. Numbers lie in the block, so that samples of one form share a text."""

_DEPTH = 32  # deeper nesting is a mistake, or a list that holds itself


class Unpackable(ValueError):
    """A value cannot be kept; the message names its place in the sample and its type."""


class Packed:
    """The text of a form, and the pieces of its block with the place of each."""

    __slots__ = ("layout", "num_bytes", "pieces")

    def __init__(self) -> None:
        self.layout = b""
        self.pieces: list[tuple[int, npt.NDArray[np.uint8]]] = []
        self.num_bytes = 0

    def add(self, piece: npt.NDArray[np.uint8]) -> int:
        """Gives a piece its place in the block."""
        offset = -(-self.num_bytes // ALIGNMENT) * ALIGNMENT
        self.pieces.append((offset, piece))
        self.num_bytes = offset + piece.nbytes
        return offset

    def write(self, block: npt.NDArray[np.uint8]) -> None:
        """Copies the pieces into a block of `num_bytes`."""
        for offset, piece in self.pieces:
            block[offset : offset + piece.nbytes] = piece


def pack(sample: Any) -> Packed:
    """Returns a sample as text and pieces, without copying contiguous arrays.

    Raises:
        Unpackable: something in it would not come back as it was: another class, objects in an array, ...
    """
    packed = Packed()
    packed.layout = json.dumps(_node(sample, "sample", packed, 0), separators=(",", ":")).encode()
    return packed


def unpack(layout: bytes, block: npt.NDArray[np.uint8]) -> Any:
    """Returns the sample; its arrays and tensors are views of `block`, which belongs to them from now on."""
    return _value(parsed(layout), block)


@functools.lru_cache(maxsize=256)
def parsed(layout: bytes) -> Node:
    """Returns the form that a text describes."""
    node: Node = json.loads(layout)
    return node


def _node(value: Any, path: str, packed: Packed, depth: int) -> Node:
    kind = type(value)
    if depth > _DEPTH:
        raise Unpackable(f"{path} is nested deeper than {_DEPTH} levels")
    if kind is dict:
        items = []
        for key, part in value.items():
            if type(key) not in {str, int}:
                raise Unpackable(f"{path} has a key of type {type(key).__name__}, not str or int")
            items.append([key, _node(part, f"{path}[{key!r}]", packed, depth + 1)])
        return ["d", items]
    if kind in {tuple, list}:
        parts = [_node(part, f"{path}[{place}]", packed, depth + 1) for place, part in enumerate(value)]
        return ["t" if kind is tuple else "l", parts]
    if value is None or kind is bool:
        return ["c", value]
    if kind is str:
        return ["s", value]
    if kind is bytes:
        return ["y", len(value), packed.add(np.frombuffer(value, np.uint8))]
    if kind is int:
        if not -(2**63) <= value < 2**63:
            return ["I", str(value)]
        return ["i", packed.add(np.array([value], np.int64).view(np.uint8))]
    if kind is float:
        return ["f", packed.add(np.array([value], np.float64).view(np.uint8))]
    if kind is np.ndarray or isinstance(value, np.generic):
        return _array_node(value, path, packed)
    if kind is getattr(sys.modules.get("torch"), "Tensor", None):  # which another thread may just be importing
        return _tensor_node(value, path, packed)
    raise Unpackable(f"{path} is of class {kind.__module__}.{kind.__qualname__}".replace("builtins.", ""))


def _array_node(value: Any, path: str, packed: Packed) -> Node:
    dtype = value.dtype
    if dtype.kind not in "biufcmMSU" or (dtype.itemsize == 0):
        raise Unpackable(f"{path} has dtype {dtype}")
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    if isinstance(value, np.generic):
        return ["n", dtype.str, packed.add(flat)]
    return ["a", dtype.str, list(value.shape), packed.add(flat)]


def _tensor_node(value: Any, path: str, packed: Packed) -> Node:
    import torch

    if value.layout != torch.strided or value.device.type != "cpu" or value.requires_grad or value.is_quantized:
        state = f"layout {value.layout}, device {value.device}, requires_grad {value.requires_grad}"
        raise Unpackable(f"{path} is not a plain tensor in host memory ({state})")
    flat = value.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
    return ["T", str(value.dtype).removeprefix("torch."), list(value.shape), packed.add(flat)]


def _value(node: Node, block: npt.NDArray[np.uint8]) -> Any:
    kind = node[0]
    if kind == "d":
        return {key: _value(part, block) for key, part in node[1]}
    if kind == "t":
        return tuple([_value(part, block) for part in node[1]])
    if kind == "l":
        return [_value(part, block) for part in node[1]]
    if kind in {"c", "s"}:
        return node[1]
    if kind == "i":
        return int(np.frombuffer(block, np.int64, 1, node[1])[0])
    if kind == "f":
        return float(np.frombuffer(block, np.float64, 1, node[1])[0])
    if kind == "I":
        return int(node[1])
    if kind == "y":
        return block[node[2] : node[2] + node[1]].tobytes()
    if kind == "n":
        return np.frombuffer(block, node[1], 1, node[2])[0]
    if kind == "a":
        count = math.prod(node[2])
        return np.ndarray(node[2], node[1], block, node[3]) if count else np.empty(node[2], node[1])
    return _tensor(node, block)


def _tensor(node: Node, block: npt.NDArray[np.uint8]) -> Any:
    import torch

    dtype, shape, count = getattr(torch, node[1]), node[2], math.prod(node[2])
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(block, dtype=dtype, count=count, offset=node[3]).reshape(shape)
