"""A nested value as JSON and named tensors, and back: what a checkpoint can hold, without any code in it.

`split` turns dictionaries, lists, tuples, numbers, text, bytes, arrays and tensors into a skeleton of plain JSON values,
in which each tensor is a reference to a name, and the tensors by that name. `join` does the reverse. What is not in that
list is refused with its path: a file that holds only data cannot run code when it is read. Of a tensor that ranks hold in
pieces, this rank's is taken (`shards.Piece`).
"""

from __future__ import annotations

import base64
import collections
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import CheckpointError
from headrace.loop.checkpoint.shards import Piece, is_shared, piece_of

if TYPE_CHECKING:
    import torch

__all__ = ["Leaf", "Split", "join", "leaves", "split"]

Leaf = tuple[tuple[Any, ...], Any]
"""(path of keys and places from the root, value)."""

Split = tuple[Any, dict[str, "torch.Tensor | Piece"]]
"""(skeleton, tensors by name): a nested value taken apart."""
TAG = "$"
"""A JSON object with this one key stands for what JSON has no word for; the value is [kind, content]."""

KINDS_OF_MAPPING: dict[type, str] = {collections.OrderedDict: "ordered", collections.Counter: "counter"}


def split(value: Any, name: str) -> Split:
    """Returns the skeleton of a value and its tensors, whose names begin with `name`.

    A tensor that occurs twice (tied weights: same memory, shape, strides and type) is listed once, under the first name.
    Tensors are returned as they are, not copied.

    Raises:
        CheckpointError: something in it is no data; names its path and type.
    """
    splitter = _Splitter()
    return splitter.split(value, (name,)), splitter.tensors


def join(skeleton: Any, tensors: Mapping[str, Any]) -> Any:
    """Returns the value that was split; what `tensors` holds of one in pieces, it holds.

    Raises:
        CheckpointError: a tensor that the skeleton speaks of is missing, or the skeleton is of another version.
    """
    if isinstance(skeleton, list):
        return [join(item, tensors) for item in skeleton]
    if not isinstance(skeleton, dict):
        return skeleton
    if set(skeleton) != {TAG}:
        return {key: join(item, tensors) for key, item in skeleton.items()}
    kind, content = skeleton[TAG]
    if kind in {"tensor", "shards", "array", "scalar"}:
        if content not in tensors:
            raise CheckpointError(f"the checkpoint speaks of a tensor {content!r} that its files do not hold")
        tensor = tensors[content]
        return tensor if kind in {"tensor", "shards"} else tensor.numpy() if kind == "array" else tensor.numpy()[()]
    if kind in {"mapping", *KINDS_OF_MAPPING.values()}:
        pairs = [(join(key, tensors), join(item, tensors)) for key, item in content]
        made = next((kept for kept, known in KINDS_OF_MAPPING.items() if known == kind), dict)
        return made(dict(pairs)) if made is collections.Counter else made(pairs)
    if kind in READERS:
        return READERS[kind]([join(item, tensors) for item in content] if isinstance(content, list) else content)
    raise CheckpointError(
        f"the checkpoint holds a value of kind {kind!r}, which this version does not know",
        why="probably a newer version of headrace saved it",
    )


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[Leaf]:
    """Returns every value of a nested one that is no mapping, list or tuple, with its path, in order."""
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in leaves(item, (*path, key))]
    if isinstance(value, list | tuple):
        return [leaf for place, item in enumerate(value) for leaf in leaves(item, (*path, place))]
    return [(path, value)]


def _dtype(name: Any) -> Any:
    import torch

    found = getattr(torch, str(name), None)
    if not isinstance(found, torch.dtype):
        raise CheckpointError(
            f"the checkpoint speaks of a type torch.{name}, which this version of torch does not know"
        )
    return found


def _device(name: Any) -> Any:
    import torch

    return torch.device(name)


def _size(content: Any) -> Any:
    import torch

    return torch.Size(content)


READERS: dict[str, Any] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": lambda content: collections.deque(content[1], content[0]),
    "float": float.fromhex,
    "complex": lambda content: complex(*content),
    "bytes": base64.b64decode,
    "dtype": _dtype,
    "device": _device,
    "size": _size,
}
"""Kind to what makes the value of its content."""


class _Splitter:
    """Collects the tensors of one value."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor | Piece] = {}
        self._seen: dict[tuple[Any, ...], str] = {}
        self._above: set[int] = set()

    def split(self, value: Any, path: tuple[Any, ...]) -> Any:
        import torch

        if value is None or type(value) in {bool, int, str}:  # not their subclasses: numpy and enumerations have some
            return value
        if type(value) is float:
            # JSON writes the shortest decimal that reads back as the same bits, but has no word for these.
            return value if math.isfinite(value) else {TAG: ["float", value.hex()]}
        if type(value) is complex:
            return {TAG: ["complex", [self.split(value.real, path), self.split(value.imag, path)]]}
        if is_shared(value) or isinstance(value, Piece):
            return {TAG: ["shards", self._piece(value, path)]}
        if isinstance(value, torch.Tensor):
            return {TAG: ["tensor", self._tensor(value, path)]}
        if isinstance(value, np.ndarray):
            return {TAG: ["array", self._array(value, path)]}
        if isinstance(value, np.generic):
            return {TAG: ["scalar", self._array(np.asarray(value), path)]}
        if isinstance(value, bytes | bytearray):
            return {TAG: ["bytes", base64.b64encode(value).decode("ascii")]}
        if isinstance(value, torch.dtype):
            return {TAG: ["dtype", str(value).removeprefix("torch.")]}
        if isinstance(value, torch.device):
            return {TAG: ["device", str(value)]}
        if id(value) in self._above:
            raise CheckpointError(f"{_show(path)} contains itself", do="keep it out of the state")
        self._above.add(id(value))
        try:
            return self._container(value, path)
        finally:
            self._above.discard(id(value))

    def _container(self, value: Any, path: tuple[Any, ...]) -> Any:
        import torch

        kind = type(value)
        if isinstance(value, Mapping):
            if kind is dict and all(type(key) is str for key in value) and TAG not in value:
                return {key: self.split(item, (*path, key)) for key, item in value.items()}
            named = next((known for kept, known in KINDS_OF_MAPPING.items() if isinstance(value, kept)), "mapping")
            return {
                TAG: [named, [[self.split(key, path), self.split(item, (*path, key))] for key, item in value.items()]]
            }
        if kind is list:
            return [self.split(item, (*path, place)) for place, item in enumerate(value)]
        if isinstance(value, collections.deque):
            return {
                TAG: ["deque", [value.maxlen, [self.split(item, (*path, place)) for place, item in enumerate(value)]]]
            }
        words: dict[type, str] = {torch.Size: "size", set: "set", frozenset: "frozenset"}
        word = words.get(kind)
        if word is not None or isinstance(value, tuple):
            # Sets have no order of their own; as text they get one, so the same state gives the same bytes.
            items = sorted(value, key=repr) if word in {"set", "frozenset"} else value
            return {TAG: [word or "tuple", [self.split(item, (*path, place)) for place, item in enumerate(items)]]}
        raise CheckpointError(
            f"{_show(path)} is of type {kind.__module__}.{kind.__qualname__}, which is no data",
            why="a checkpoint holds numbers, text, tensors, arrays and containers of them, so that reading it runs no code",
            do="give its object a state_dict() of such values, or leave it out",
        )

    def _array(self, value: np.ndarray[Any, Any], path: tuple[Any, ...]) -> str:
        import torch

        try:
            return self._tensor(torch.from_numpy(np.array(value, order="C")), path)
        except TypeError:
            raise CheckpointError(
                f"{_show(path)} is an array of type {value.dtype}, which no file of tensors can hold",
                do="turn it into numbers or a list of text",
            ) from None

    def _tensor(self, value: torch.Tensor, path: tuple[Any, ...]) -> str:
        import torch

        if value.layout is not torch.strided or value.is_quantized:
            what = "a quantized tensor" if value.is_quantized else f"a tensor of layout {value.layout}"
            raise CheckpointError(f"{_show(path)} is {what}, which a file of plain tensors cannot hold")
        tensor = value.detach()
        same = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)
        return self._name(tensor, path, same if tensor.numel() else None)

    def _piece(self, value: Any, path: tuple[Any, ...]) -> str:
        piece = value if isinstance(value, Piece) else piece_of(value, _show(path))
        # By its storage and not by its address: a rank with an empty piece must find the same tensors tied as the others.
        local = piece.local
        same = (local.untyped_storage()._cdata, local.storage_offset(), piece.shape, piece.offsets, local.dtype)
        return self._name(piece, path, same)

    def _name(self, tensor: torch.Tensor | Piece, path: tuple[Any, ...], same: tuple[Any, ...] | None) -> str:
        if same is not None and same in self._seen:
            return self._seen[same]
        # In the file of a part, names begin behind the part's; one is left for a part that is a tensor itself.
        name = ".".join(str(key) for key in (path if len(path) > 1 else (*path, "value")))
        while name in self.tensors:  # {1: a, "1": b}
            name += "_"
        self.tensors[name] = tensor
        if same is not None:
            self._seen[same] = name
        return name


def _show(path: tuple[Any, ...]) -> str:
    """A path as code: optimizer['state'][0]."""
    return str(path[0]) + "".join(f"[{key!r}]" for key in path[1:])
