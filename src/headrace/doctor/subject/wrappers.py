"""Looks into wrappers that stand for a torch DataLoader: timm's PrefetchLoader, Fabric's, and those that users write.

Such a wrapper moves or scales finished batches. All that can be asked of a loader (its rows one by one, its workers, its
sampler, its collate function) is to be had from the loader inside alone.
"""

from __future__ import annotations

from typing import Any

from headrace.doctor.subject.looking import attribute, is_instance, length

__all__ = ["loader_within"]


def loader_within(target: Any) -> Any:
    """Returns the DataLoader for which a wrapper stands; the target itself if it is none.

    A wrapper shows the data set of the one loader that it holds as its own, and has as many batches: it says itself
    that the loader's facts are its own. An object that merely uses a loader, cuts its passes short, repeats them or
    draws from several, is examined as what it is.
    """
    if _is_loader(target) or not hasattr(type(target), "__iter__") or hasattr(type(target), "__getitem__"):
        return target
    held = [value for value in getattr(target, "__dict__", {}).values() if _is_loader(value)]
    if len(held) != 1:
        return target
    inner = held[0]
    is_shown = attribute(target, "dataset") is attribute(inner, "dataset")
    return inner if is_shown and length(target) == length(inner) else target


def _is_loader(value: Any) -> bool:
    return is_instance(value, "torch.utils.data", "DataLoader")
