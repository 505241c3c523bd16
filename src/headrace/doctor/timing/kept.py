"""One batch that is kept: handed to the step again and again, on the host or on the device."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from headrace.doctor.subject import Subject
from headrace.doctor.subject.walking import end_pass
from headrace.doctor.timing.realise import realise
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.errors import TargetError

__all__ = ["device_in_use", "first_batch", "fresh", "on_device", "synchronise"]


def first_batch(subject: Subject, setting: Setting) -> Any:
    """Returns the first batch as a setting delivers it, made without workers where the loader can do that.

    Raises:
        TargetError: the loader delivers none.
    """
    alone = dataclasses.replace(
        setting, num_workers=0, prefetch_factor=None, persistent_workers=None, start_method=None, runner=None
    )
    batches = iter(realise(subject, AS_IT_IS if "workers" in subject.cannot else alone))
    try:
        return next(batches)
    except StopIteration:
        raise TargetError(f"{subject.kind} delivers no batch, so there is none to train on") from None
    finally:
        end_pass(batches)


def fresh(batch: Any) -> Any:
    """Returns the batch in new dicts and lists, as a step may pop what it does not need; tensors are the same."""
    kind = type(batch)
    if kind is dict:
        return {name: fresh(part) for name, part in batch.items()}
    if kind is list:
        return [fresh(part) for part in batch] if len(batch) <= MAX_PARTS else batch
    if kind is tuple:
        return tuple(map(fresh, batch)) if len(batch) <= MAX_PARTS else batch
    return batch


MAX_PARTS = 32
"""Longer lists are texts or paths of samples: to copy them each time would take longer than some steps."""


def device_in_use() -> Any:
    """The CUDA device on which something has been put by now; None: there is none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.memory_allocated() else None


def synchronise() -> None:
    """Waits until the device has done what it was given; nothing where none is in use."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def on_device(batch: Any, device: Any) -> Any:
    """Returns a batch with its tensors on a device; what is no tensor stays as it is."""
    if callable(getattr(batch, "to", None)):
        return batch.to(device)
    kind = type(batch)
    if isinstance(batch, Mapping):
        moved = {name: on_device(part, device) for name, part in batch.items()}
        return moved if kind is dict else _again(batch, moved)
    if isinstance(batch, tuple):
        parts = [on_device(part, device) for part in batch]
        return kind(*parts) if hasattr(batch, "_fields") else tuple(parts)
    if isinstance(batch, list):
        return [on_device(part, device) for part in batch]
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        fields = {field.name: on_device(getattr(batch, field.name), device) for field in dataclasses.fields(batch)}
        return dataclasses.replace(batch, **fields)
    return batch


def _again(batch: Any, moved: dict[str, Any]) -> Any:
    try:
        return type(batch)(moved)
    except Exception:  # a class of its own, with a constructor of its own
        return moved
