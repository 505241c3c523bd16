"""One walk over the parts of a batch: mappings, lists, tuples, named tuples and dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["is_tensor", "map_leaves"]


def is_tensor(value: Any) -> bool:
    """True for a torch tensor, without importing torch."""
    return hasattr(value, "record_stream") and hasattr(value, "numpy")


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Returns the batch with every leaf passed through a function.

    Named tuples, dataclasses and mappings that are no dicts keep their type; dicts, lists and other tuples come back
    plain. So a batch of the loader's own kind (DictBatch, ListBatch, TupleBatch) loses its identity, which belongs to
    the batch that was handed over; the loader attaches it again.
    """
    if isinstance(value, (str, bytes)):
        return function(value)
    if isinstance(value, Mapping):
        mapped = {name: map_leaves(function, part) for name, part in value.items()}
        return mapped if isinstance(value, dict) else type(value)(mapped)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(function, part) for part in value))
    if isinstance(value, list):
        return [map_leaves(function, part) for part in value]
    if isinstance(value, tuple):
        return tuple(map_leaves(function, part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **{name: map_leaves(function, part) for name, part in parts.items()})
    return function(value)
