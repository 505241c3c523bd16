"""One batch that is kept, and handed to the training step again and again."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np

from headrace.contract.view import flatten
from headrace.doctor.subject import Subject
from headrace.doctor.subject.walking import end_pass
from headrace.doctor.timing.realise import realise
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.errors import TargetError

__all__ = ["Kept", "first_batch"]

MAX_PARTS = 32
"""Longer lists are texts or paths of samples: to copy them each time would take longer than some steps."""


class Kept:
    """The batch. A step may do with it what it likes; the next one gets it as it was."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self._as_it_was: Any = None
        """A copy; only while it is not known whether steps change the batch, and if they do."""
        self.is_changed = False
        """A step has changed values in place, so each gets a copy of its own."""

    def try_out(self, step: Any) -> None:
        """Calls the step once, and sees whether it changes values: `images.div_(255)` a hundred times is no step any more."""
        self._as_it_was = _copied(self.batch)
        before = _state(self.batch)
        step(self.take())
        self.is_changed = _state(self.batch) != before
        if not self.is_changed:
            self._as_it_was = None

    def take(self) -> Any:
        """Returns the batch for one step. Cost: about a microsecond, unless steps change it."""
        return _copied(self._as_it_was) if self.is_changed else _fresh(self.batch)


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


def _fresh(batch: Any) -> Any:
    """The batch in new dicts and lists, as a step may pop what it does not need; tensors are the same."""
    kind = type(batch)
    if kind is dict:
        return {name: _fresh(part) for name, part in batch.items()}
    if kind is list:
        return [_fresh(part) for part in batch] if len(batch) <= MAX_PARTS else batch
    if kind is tuple:
        return tuple(map(_fresh, batch)) if len(batch) <= MAX_PARTS else batch
    return batch


def _copied(batch: Any) -> Any:
    try:
        return copy.deepcopy(batch)
    except Exception:  # something in it cannot be copied: then all steps get the same
        return batch


def _state(batch: Any) -> list[Any]:
    """What changes when values are changed in place: torch's own count, or numpy's values."""
    found: list[Any] = []
    for _, value in flatten(batch):
        if hasattr(value, "_version"):
            found.append(value._version)
        elif isinstance(value, np.ndarray):
            found.append(hash(value.tobytes()))
    return found
