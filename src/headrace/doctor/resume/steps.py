"""One optimizer step as a run recorded it, and what a whole run says of its epochs."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.errors import SampleId

__all__ = ["Step", "epoch_starts", "is_same_loss", "parse"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one optimizer step was made of."""

    ids: tuple[SampleId, ...]
    """Samples of its batches, in order; digests of the batches where samples are not numbered."""
    losses: tuple[float, ...]
    epoch: int
    """Number of the walk through a loader, in this process; walks of other loaders count too. -1: no loader."""
    place: int
    """Number of its first batch in that walk."""
    by_content: bool = False


def parse(lines: Iterable[str]) -> tuple[tuple[Step, ...], dict[str, Any]]:
    """Returns the steps, and what else the child told: `refused`, `raised`, `takes_steps`, ..."""
    steps: list[Step] = []
    told: dict[str, Any] = {}
    for line in lines:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:  # the last row of a run that was killed may be cut
            break
        if isinstance(row, dict):
            told |= row
        else:
            steps.append(_step(row))
    return tuple(steps), told


def _step(row: list[Any]) -> Step:
    ids: list[SampleId] = []
    last = None
    for part, _, epoch, place, _ in row:
        if (epoch, place) != last:  # several backward passes over one batch
            ids += part or ()
            last = (epoch, place)
    return Step(
        ids=tuple(ids),
        losses=tuple(loss for _, loss, *_ in row if loss is not None),
        epoch=row[0][2] if row else -1,
        place=row[0][3] if row else 0,
        by_content=any(part[4] for part in row),
    )


def epoch_starts(steps: Sequence[Step]) -> list[int]:
    """Returns the numbers of the steps with which an epoch begins; the first is 0."""
    return [0, *(at for at in range(1, len(steps)) if steps[at].epoch != steps[at - 1].epoch)]


def is_same_loss(mine: Step, theirs: Step) -> bool:
    """True if two steps had the same losses but for rounding."""
    return len(mine.losses) == len(theirs.losses) and all(
        a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-8)
        for a, b in zip(mine.losses, theirs.losses, strict=True)
    )
