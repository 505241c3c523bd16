"""Do the same steps give the same bits? Asked of the steps themselves: run, put back, run again."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.loop.checkpoint.digests import Digests, digests, first_difference
from headrace.loop.checkpoint.parts import Part
from headrace.loop.checkpoint.trial import Trial

__all__ = ["Repeat", "repeat"]


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

    Costs twice the steps, three times if they differ; one copy of the state, and a digest of each item after each step.

    Args:
        parts: What a step may change, in the order of loading.
        step: One training step on one batch.
        batches: A batch for each step.
    """
    trial = Trial(parts)
    try:
        first = list(_after_each(parts, step, batches))
        trial.put_back()
        for number, (one, other) in enumerate(zip(first, _after_each(parts, step, batches), strict=True)):
            if (item := first_difference(one, other)) is not None:
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


def _after_each(parts: Sequence[Part], step: Callable[[Any], Any], batches: Sequence[Any]) -> Iterator[Digests]:
    """The digests of all parts after each step."""
    for batch in batches:
        step(batch)
        yield digests(parts)


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
