"""Asks the installed torch which tensors of a batch its pinning reaches; nothing is pinned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["find_unreached"]

MAX_DEPTH = 8


def find_unreached(batch: Any) -> tuple[int, list[tuple[str, str]]]:
    """Returns the number of tensors in a batch, and (path, class that holds it) of each that pinning leaves out.

    Torch's own function walks the batch, while `Tensor.pin_memory` only notes who called. So the answer is that of the
    installed version, also for classes that pin themselves.
    """
    import torch
    from torch.utils.data._utils.pin_memory import pin_memory

    reached: set[int] = set()
    original = torch.Tensor.pin_memory

    def note(tensor: Any, *_: Any, **__: Any) -> Any:
        reached.add(id(tensor))
        return tensor

    tensors = list(_tensors(batch, "", "", torch.Tensor))  # kept, so that ids stay theirs
    torch.Tensor.pin_memory = note  # type: ignore[assignment,method-assign]
    try:
        pin_memory(batch)  # type: ignore[no-untyped-call]
    finally:
        torch.Tensor.pin_memory = original  # type: ignore[method-assign]
    left = [(path, holder) for path, holder, tensor in tensors if id(tensor) not in reached]
    return len(tensors), left


def _tensors(value: Any, path: str, holder: str, kind: Any, depth: int = 0) -> Iterator[tuple[str, str, Any]]:
    """Yields (path, class of the last object that is no container, tensor)."""
    if isinstance(value, kind):
        if value.device.type == "cpu":
            yield path or "the batch", holder, value
        return
    if depth > MAX_DEPTH or isinstance(value, (str, bytes, int, float, type(None))):
        return
    if isinstance(value, Mapping):
        parts = [(f"{path}[{name!r}]", part) for name, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{path}[{place}]", part) for place, part in enumerate(value)]
    else:
        holder = type(value).__qualname__
        parts = [(f"{path}.{name}", part) for name, part in _attributes(value)]
    for inner, part in parts:
        yield from _tensors(part, inner, holder, kind, depth + 1)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    held = getattr(value, "__dict__", {})
    slots = [name for owner in type(value).__mro__ for name in getattr(owner, "__slots__", ()) if hasattr(value, name)]
    return [*held.items(), *((name, getattr(value, name)) for name in slots if name not in {"__dict__", "__weakref__"})]
