"""Where to begin looking for what a data set holds, and under which keys it may keep one sample."""

from __future__ import annotations

import types
from typing import Any

from headrace.doctor.stacks import user_modules
from headrace.errors import SampleId

__all__ = ["roots_of", "sample_keys"]

MAX_WRAPPED = 8
"""Data sets inside data sets that are looked into."""


def roots_of(subject: Any) -> list[dict[str, Any]]:
    """Returns where to look, the nearest first, by the name that paths begin with.

    First the data set and the collate function; then what the user's own modules keep at their top: those that define
    the data set, what it wraps, and the collate function, before all others. A program may import hundreds of modules
    of its own, and looking ends after a while.
    """
    near = {"dataset": subject.dataset}
    collate = getattr(subject.loader, "collate_fn", None)
    if collate is not None:
        near["collate_fn"] = collate
    defining = _defining_modules(subject.dataset, collate)
    modules = [module for module in user_modules() if not module.__name__.startswith("headrace")]
    modules.sort(key=lambda module: module.__name__ not in defining)
    return [near, *(_top_of(module, subject.loader) for module in modules)]


def _defining_modules(dataset: Any, collate: Any) -> set[str | None]:
    """The modules in which the classes of a data set, of the data sets inside it and of its collate function stand."""
    kinds, inner = [*type(collate).__mro__], dataset
    for _ in range(MAX_WRAPPED):
        kinds += type(inner).__mro__
        inner = getattr(inner, "dataset", None)
        if inner is None:
            break
    return {kind.__module__ for kind in kinds} | {getattr(collate, "__module__", None)}


def _top_of(module: types.ModuleType, loader: Any) -> dict[str, Any]:
    """What a module holds, and what its classes do; the loader itself holds all sorts of things that are its own."""
    roots = {
        f"{module.__name__}.{name}": value
        for name, value in list(vars(module).items())
        if not (name.startswith("__") or isinstance(value, (types.ModuleType, type)) or value is loader)
    }
    for kind in [value for value in vars(module).values() if _is_class_of(value, module)]:
        roots |= {
            f"{module.__name__}.{kind.__name__}.{name}": value
            for name, value in list(vars(kind).items())
            if not name.startswith("__") and not isinstance(value, (staticmethod, classmethod, property))
        }
    return roots


def sample_keys(subject: Any, index: int) -> set[SampleId]:
    """Returns under which keys a data set may keep a sample: row, id, and the row in the data set under a Subset."""
    keys: set[SampleId] = {index, subject.sample_id(index)}
    dataset = subject.dataset
    for _ in range(MAX_WRAPPED):
        indices, inner = getattr(dataset, "indices", None), getattr(dataset, "dataset", None)
        if indices is None or inner is None:
            break
        try:
            index = int(indices[index])
        except (LookupError, TypeError, ValueError):
            break
        keys.add(index)
        dataset = inner
    return keys


def _is_class_of(value: Any, module: types.ModuleType) -> bool:
    return isinstance(value, type) and value.__module__ == module.__name__
