"""Lets the bench know when a data set enters a transform that it keeps for itself."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from headrace.doctor.lab.bench import Bench
from headrace.doctor.stacks import is_doctors

__all__ = ["Around", "enter_transforms", "placeholder", "without_spy"]

Around = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Takes a transform, its arguments and its options, and gives what the data set shall have of it."""


def enter_transforms(bench: Bench, slots: Iterable[tuple[Any, str, Callable[..., Any]]]) -> None:
    """Lets the bench know when a data set enters a transform that it keeps in an attribute."""

    def around(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        with bench.inside("transform"):
            return function(*arguments, **options)

    for holder, name, function in slots:
        try:
            setattr(holder, name, placeholder(function, around))
        except Exception:  # noqa: S112 - a data set that guards its attributes is examined without this stage
            continue


def placeholder(function: Callable[..., Any], around: Around) -> Any:
    """Returns what stands for a transform, and is it in every respect but that calls go through `around`."""
    return _Entered(around, function)


def without_spy(value: Any) -> Any:
    """Returns the transform or the function that a spy stands for, which is all that the user knows; else the value."""
    if isinstance(value, types.FunctionType) and is_doctors(value):
        return vars(value).get("__wrapped__", value)
    return object.__getattribute__(value, "_entered")[1] if issubclass(type(value), _Entered) else value


class _Entered:
    """Stands for a transform, and is it in every other respect: attributes and class are the transform's own."""

    def __init__(self, around: Around, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_entered", (around, function))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        around, function = object.__getattribute__(self, "_entered")
        return around(function, arguments, options)

    @property  # type: ignore[misc] # so that isinstance sees the transform
    def __class__(self) -> type:
        return type(object.__getattribute__(self, "_entered")[1])

    def __reduce_ex__(self, protocol: Any) -> Any:  # a copy, or a worker started by spawn, gets the transform alone
        return _itself, (object.__getattribute__(self, "_entered")[1],)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_entered")[1], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_entered")[1], name, value)


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
