"""The way of a batch from the loader to a device: today, pinned (page-locked) host memory."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

__all__ = ["pin"]


@functools.cache
def _accelerator_present() -> bool:
    import torch

    return torch.cuda.is_available()


def pin(batch: Any) -> Any:
    """Returns the batch with its tensors in pinned memory, so that `tensor.to(device, non_blocking=True)` overlaps.

    Goes through mappings, lists, tuples, named tuples and dataclasses, and calls the `pin_memory()` method of anything
    that has one, as torch does. Without a CUDA device the batch is returned as it is.

    Cost: one copy of the batch; page-locking is slow, which later work avoids by reusing pinned slots.
    """
    return _pinned(batch) if _accelerator_present() else batch


def _pinned(value: Any) -> Any:
    if hasattr(value, "pin_memory"):
        return value.pin_memory()
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        pinned = {name: _pinned(part) for name, part in value.items()}
        return pinned if type(value) is dict else type(value)(pinned)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_pinned, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_pinned, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: _pinned(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **parts)
    return value
