"""Looks at foreign objects without importing their libraries and without falling over what their code raises."""

from __future__ import annotations

import inspect
import pathlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from headrace.doctor.stacks import is_user_code

__all__ = [
    "CLASSES", "attribute", "class_name", "descends_from", "function_name", "is_instance", "layers", "length",
    "transform_slots",
]  # fmt: skip

_MAX_LAYERS = 8
"""Wrappers around a data set that are looked through."""

CLASSES = "_headrace_classes"
"""Attribute of a loader that was made for a model: (number of classes, who says so)."""


def is_instance(value: Any, module: str, name: str) -> bool:
    """Isinstance without the import: nothing is an instance of a class of a module that nobody has imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def is_torch(value: Any) -> bool:
    """True for torch's DataLoader and classes made from it."""
    return is_instance(value, "torch.utils.data", "DataLoader")


def is_headrace(value: Any) -> bool:
    """True for headrace's own DataLoader and classes made from it."""
    return is_instance(value, "headrace.engine.loader", "DataLoader")


def descends_from(value: Any, package: str, *names: str) -> bool:
    """True if a class of one of these names, from anywhere in a package, is the value's class or above it.

    For libraries that move their classes between files from release to release.
    """
    return any(
        base.__name__ in names and f"{base.__module__}.".startswith(f"{package}.") for base in type(value).__mro__
    )


def layers(dataset: Any) -> Iterator[Any]:
    """Yields a data set and those inside it: Subset and the like (`dataset`), ConcatDataset and the like (`datasets`)."""
    pending, seen = [dataset], set[int]()
    while pending and len(seen) < _MAX_LAYERS:
        one = pending.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = attribute(one, "datasets")
        parts = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, (list, tuple)) else ()
        pending += [attribute(one, "dataset"), *parts]


_SLOTS = ("transforms", "transform", "target_transform")
"""Attributes that torchvision and those who follow it give their transforms; `transforms` calls the other two."""


def transform_slots(dataset: Any) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yields (holder, attribute, function) for each transform that a data set, or one inside it, keeps for itself."""
    for layer in layers(dataset):
        for name in _SLOTS:
            held = getattr(layer, "__dict__", {}).get(name)
            if callable(held):
                yield layer, name, held


def attribute(holder: Any, name: str) -> Any:
    """An attribute, or None: a property of the user's own may raise anything."""
    try:
        return getattr(holder, name, None)
    except Exception:
        return None


def length(value: Any) -> int | None:
    """`len(value)`, or None if it has none or fails."""
    try:
        return len(value)
    except Exception:
        return None


def class_name(value: Any) -> str:
    """The class with its module, under the name that its users know."""
    kind = type(value)
    # Torch documents its classes under the folder, not under the file in which they stand.
    module = "torch.utils.data" if kind.__module__.startswith("torch.utils.data.") else kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def function_name(function: Any) -> str:
    """The name of a function, with file and line if it is the user's own."""
    inner = inspect.unwrap(getattr(function, "func", function))  # functools.partial
    name = (getattr(inner, "__qualname__", None) or type(inner).__qualname__).rpartition("<locals>.")[2]
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    if code is not None and is_user_code(code.co_filename):
        return f"{name} ({pathlib.Path(code.co_filename).name}:{code.co_firstlineno})"
    # A library's function that was given the user's: timm hands `worker_seeding` on like that.
    held = (*getattr(function, "args", ()), *(getattr(function, "keywords", None) or {}).values())
    given = [one for one in held if isinstance(one, types.FunctionType) and is_user_code(one.__code__.co_filename)]
    return f"{name} with {function_name(given[0])}" if given else name
