"""Where to begin looking for what a data set holds, and under which keys it may keep one sample."""

from __future__ import annotations

import types
from typing import Any

from headrace.doctor.stacks import user_modules
from headrace.errors import SampleId

__all__ = ["roots_of", "sample_keys"]


def roots_of(subject: Any) -> dict[str, Any]:
    """Returns where to look: the data set, the collate function, and what the user's own modules keep at their top."""
    roots = {"dataset": subject.dataset}
    collate = getattr(subject.loader, "collate_fn", None)
    if collate is not None:
        roots["collate_fn"] = collate
    for module in user_modules():
        if not module.__name__.startswith("headrace"):
            held = {
                name: value
                for name, value in list(vars(module).items())
                if not name.startswith("__") and not isinstance(value, (types.ModuleType, type))
            }
            roots |= {f"{module.__name__}.{name}": value for name, value in held.items() if value is not subject.loader}
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
    for _ in range(8):
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
