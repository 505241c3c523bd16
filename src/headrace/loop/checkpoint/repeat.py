"""Do the same steps give the same bits? Asked of the steps themselves: run, put back, run again."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.loop.checkpoint.parts import Part
from headrace.loop.checkpoint.shards import Piece
from headrace.loop.checkpoint.tree import leaves
from headrace.loop.checkpoint.trial import Trial

__all__ = ["Repeat", "difference", "repeat"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Whether steps that were run twice from one state ended in the same state."""

    is_exact: bool
    num_steps: int
    """Steps of each run."""
    step: int | None = None
    """First step, from 0, after which something differed; None: nothing did."""
    item: str | None = None
    """The first item that differed after it: `model.fc.weight`."""
    operation: str | None = None
    """What torch says does not repeat; None: it knows of nothing, or all is exact."""

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.num_steps} steps run twice gave the same bits"
        cause = f"; torch names {self.operation}" if self.operation else ""
        return f"run twice, step {self.step} gave other bits ({self.item}){cause}"


def repeat(parts: Sequence[Part], step: Callable[[Any], Any], batches: Sequence[Any]) -> Repeat:
    """Runs the steps twice and compares all parts after each; the state is then what it was before.

    Costs twice the steps, three times if they differ, and a copy of the state for each step.

    Args:
        parts: What a step may change, in the order of loading.
        step: One training step on one batch.
        batches: A batch for each step.
    """
    trial = Trial(parts)
    try:
        first = list(_states(trial, step, batches))
        trial.put_back()
        for number, (one, other) in enumerate(zip(first, _states(trial, step, batches), strict=True)):
            if (item := difference(parts, one, other)) is not None:
                trial.put_back()
                return Repeat(
                    is_exact=False,
                    num_steps=len(batches),
                    step=number,
                    item=item,
                    operation=_operation(step, batches),
                )
        return Repeat(is_exact=True, num_steps=len(batches))
    finally:
        trial.put_back()


def _states(trial: Trial, step: Callable[[Any], Any], batches: Sequence[Any]) -> Iterator[list[Any]]:
    """The state of each part after each step. Of the first run all are kept, of the second one at a time."""
    for batch in batches:
        step(batch)
        yield trial.states()


def difference(parts: Sequence[Part], one: Sequence[Any], other: Sequence[Any], *, without: str = "") -> str | None:
    """Returns the name of the first item in which two states of parts differ, a part left out; None: in none."""
    for part, here, there in zip(parts, one, other, strict=True):
        if part.name == without:
            continue
        for (path, value), (_, again) in zip(leaves(here), leaves(there), strict=True):
            if not _same(value, again):
                return ".".join(map(str, (part.name, *path)))
    return None


def _same(one: Any, other: Any) -> bool:
    import numpy as np
    import torch

    if isinstance(one, Piece):
        return _same(one.local, other.local)
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and one.contiguous().view(-1).view(torch.uint8).equal(
            other.contiguous().view(-1).view(torch.uint8)
        )
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 - NaN equals NaN here


def _operation(step: Callable[[Any], Any], batches: Sequence[Any]) -> str | None:
    """What torch refuses to run if only operations are allowed that repeat."""
    try:
        with _only_deterministic():
            for batch in batches:
                step(batch)
    except RuntimeError as error:
        found = re.match(r"\s*(\S+) does not have a deterministic implementation", str(error))
        return found[1] if found else None
    return None


@contextmanager
def _only_deterministic() -> Iterator[None]:
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(mode=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
