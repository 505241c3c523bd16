"""The device that a training step computes on, as far as it shows from outside."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from headrace.contract.view import flatten

__all__ = ["device_in_use", "has_device", "is_on_device", "on_device", "synchronise"]


def has_device() -> bool:
    """True if there is a CUDA device, and torch has been imported."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def device_in_use() -> Any:
    """The CUDA device on which something has been put by now; None: there is none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.memory_allocated() else None


def synchronise() -> None:
    """Waits until the device has done what it was given; does nothing where none is in use."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def is_on_device(batch: Any) -> bool:
    """True if a tensor of the batch is not on the host."""
    devices = (getattr(value, "device", None) for _, value in flatten(batch))
    return any(getattr(device, "type", "cpu") != "cpu" for device in devices)


def on_device(batch: Any, device: Any) -> Any:
    """Returns a batch with its tensors on a device; what is no tensor stays as it is."""
    if callable(getattr(batch, "to", None)):
        return batch.to(device)
    kind = type(batch)
    if isinstance(batch, Mapping):
        moved = {name: on_device(part, device) for name, part in batch.items()}
        return moved if kind is dict else _again(kind, moved)
    if isinstance(batch, (list, tuple)):
        parts = [on_device(part, device) for part in batch]
        return kind(*parts) if hasattr(batch, "_fields") else parts if kind is list else _again(kind, parts)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        fields = {field.name: on_device(getattr(batch, field.name), device) for field in dataclasses.fields(batch)}
        return dataclasses.replace(batch, **fields)
    return batch


def _again(kind: type, moved: Any) -> Any:
    """A container of the same class, if its constructor takes another one."""
    try:
        return kind(moved)
    except Exception:
        return moved
