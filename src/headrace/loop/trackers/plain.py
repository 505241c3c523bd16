"""What a history is made of: numbers by name, and settings as plain values, nested or flat."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.errors import ConfigurationError

__all__ = ["flat", "numbers", "plain"]

TAKEN = ("step", "time")
"""Names that each row of a history has already."""


def numbers(values: Mapping[str, Any]) -> dict[str, int | float]:
    """Returns the values as Python numbers: one-element tensors and arrays become what they hold.

    Raises:
        ConfigurationError: a value is no number, or its name is taken.
    """
    found: dict[str, int | float] = {}
    for name, value in values.items():
        if name in TAKEN:
            raise ConfigurationError(
                f"no value can be named {name!r}: each row of a history has one of that name already"
            )
        try:
            found[str(name)] = int(operator.index(value))
        except TypeError:
            found[str(name)] = _float(name, value)
    return found


def plain(value: Any) -> Any:
    """Returns a value as JSON has it: dictionaries, lists, text, numbers, true, false, null; anything else as its text.

    Numbers that JSON lacks become the text "NaN", "Infinity" and "-Infinity": `float(...)` in Python and `Number(...)` in
    JavaScript make them numbers again, and no reader stumbles.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return _spelled(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return [plain(inner) for inner in sorted(value, key=str)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a number of numpy or torch
        return plain(value.item())
    return str(value)


def flat(value: Any) -> dict[str, Any]:
    """Returns nested settings as one level: `{"optimizer": {"lr": 1}}` is `{"optimizer.lr": 1}`; lists stay whole."""
    return dict(_leaves(plain(value), ""))


def _leaves(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or (not value and prefix):
        yield prefix, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{prefix}.{key}" if prefix else key)


def _float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        shape = getattr(value, "shape", None)
        raise ConfigurationError(
            f"value {name!r} is no number, but {type(value).__name__}{'' if shape is None else f' of shape {tuple(shape)}'}"
        ) from None


def _spelled(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
