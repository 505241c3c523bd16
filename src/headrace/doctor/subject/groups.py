"""Takes a TARGET apart that is several loaders: (train, val), a dict of them, and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["loaders_in", "split_up"]

ORDER = ("train", "val", "test")
"""What the loaders of a tuple are by custom."""
_SYNONYMS = {"training": "train", "validation": "val", "valid": "val", "dev": "val", "eval": "val", "testing": "test"}


def split_up(target: Any) -> dict[str, Any]:
    """Returns the loaders of a target by name, the training loader first; a single one has the empty name."""
    named = loaders_in(target)
    order = {name: place for place, name in enumerate(ORDER)}
    return dict(sorted(named.items(), key=lambda item: order.get(item[0], len(ORDER)))) or {"": target}


def loaders_in(target: Any) -> dict[str, Any]:
    """Returns the loaders in a tuple, list or dict by name; empty if it is something else."""
    if isinstance(target, Mapping) and target and all(map(_is_loader, target.values())):
        return {_SYNONYMS.get(str(name).lower(), str(name)): part for name, part in target.items()}
    if isinstance(target, (tuple, list)) and 1 < len(target) <= 8 and all(map(_is_loader, target)):
        return {ORDER[i] if i < len(ORDER) else f"loader {i + 1}": part for i, part in enumerate(target)}
    return {}


def _is_loader(value: Any) -> bool:
    """True for a loader or data set of torch or headrace, as opposed to a sample, which may be indexable too."""
    return any(base.__module__.startswith(("torch.utils.data", "headrace.engine")) for base in type(value).__mro__)
