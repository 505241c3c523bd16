"""Does memory keep growing, or does it fill up and stay? A robust slope over batches, and a verdict that may be "undecided".

Workers that were forked copy pages of their parent when they touch objects in them, if only to count references. That looks
like a leak at first, and ends when everything is copied. So a slope alone is no leak: it has to go on at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace.doctor.statistics.slopes import slopes_between

__all__ = ["MemoryGrowth", "judge_growth", "theil_sen"]

FEWEST_MOMENTS = 16
"""Eight in each half: a median of fewer slopes is one moment's luck."""
STILL_GROWS = 0.8
"""A leak grows in the second half as it did in the first; a filling up that is a third done has slowed down to this."""
HAS_STOPPED = 0.2
"""Share of the first half's growth, below which the second half's is the tail of a filling up."""
SMALL_BYTES = 1 << 20
SMALL_SHARE = 0.002
"""Growth below either is none: allocators and caches of a healthy process move by as much."""
_MOST_POINTS = 500
"""All pairs of more would take more than a few megabytes; evenly spread ones serve as well."""

Verdict = Literal["plateau", "leak", "undecided"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGrowth:
    """How memory grew with the batches."""

    verdict: Verdict
    """`leak`: it grows as fast at the end as before; `plateau`: it does not grow, or has stopped; else `undecided`."""
    num_moments: int
    num_batches: float
    """Batches between the first moment and the last."""
    bytes_per_1000: float | None
    """Slope over all moments, bytes per 1,000 batches; None: too few moments or no batches."""
    early_bytes_per_1000: float | None
    """The same of the first half of the batches."""
    late_bytes_per_1000: float | None
    """The same of the second half: near the early one in a leak, near 0 on a plateau."""
    noise_bytes: float | None
    """How far moments lie from a line through their half, typically: growth below it is not seen."""
    why: str
    """What decided."""


def theil_sen(x: Sequence[float], y: Sequence[float]) -> float:
    """Returns the median of the slopes between all pairs of points: up to 29 % of them may be wild.

    Args:
        x: Where; pairs at the same place are left out.
        y: What was seen there.

    Raises:
        ValueError: No two points lie at different places.

    Source: Sen, Estimates of the regression coefficient based on Kendall's tau, 1968.

    >>> theil_sen([0, 1, 2, 3, 4], [5, 7, 9, 1000, 13])
    2.0
    """
    places, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(places) > _MOST_POINTS:
        chosen = np.linspace(0, len(places) - 1, _MOST_POINTS).round().astype(np.intp)
        places, values = places[chosen], values[chosen]
    slopes = slopes_between(places, values)
    if not slopes.size:
        raise ValueError("a slope needs two points at different places")
    return float(np.median(slopes))


def judge_growth(
    seen: Sequence[tuple[float, float]], *, after_batch: float = 0, could_copy_bytes: float = 0
) -> MemoryGrowth:
    """Returns whether memory leaks.

    Args:
        seen: (batches so far, bytes of anonymous memory), in the order of time; see `MemorySeries.at_batches`.
        after_batch: Moments before it are left out. The length of the first epoch is a good choice: imports, pools and
            the first worker start come with it.
        could_copy_bytes: Memory that workers may still copy by touching what they share: about the size of the objects
            in the data set times the workers. Growth by less is not called a leak, as that may be all there is to it: with
            many workers it takes many epochs to slow down. Default: nothing is known of such objects.
    """
    points = np.asarray([point for point in seen if point[0] >= after_batch], np.float64).reshape(-1, 2)
    batches, memory = points[:, 0], points[:, 1]
    span = float(batches[-1] - batches[0]) if len(points) else 0.0
    early = batches <= batches[0] + span / 2 if len(points) else np.zeros(0, np.bool_)
    if min(int(early.sum()), int((~early).sum())) < FEWEST_MOMENTS // 2:
        return MemoryGrowth(
            verdict="undecided",
            num_moments=len(points),
            num_batches=span,
            bytes_per_1000=None,
            early_bytes_per_1000=None,
            late_bytes_per_1000=None,
            noise_bytes=None,
            why="too few moments, or too few batches between them",
        )
    early_slope, early_noise = _line(batches[early], memory[early])
    late_slope, late_noise = _line(batches[~early], memory[~early])
    noise = max(early_noise, late_noise)
    small = max(SMALL_BYTES, SMALL_SHARE * float(np.median(memory)), 3 * noise)
    early_high, late_high = np.quantile(memory[early], 0.9), np.quantile(memory[~early], 0.9)
    verdict, why = _judge(
        early_bytes=early_slope * span / 2,
        late_bytes=late_slope * span / 2,
        risen_bytes=float(late_high - early_high),
        stepped_bytes=_end_to_end(memory[~early]),
        small=small,
        has_fallen=bool(np.quantile(memory[~early], 0.1) < np.median(memory[early])),
    )
    if verdict == "leak" and _end_to_end(memory) <= could_copy_bytes:
        verdict, why = "undecided", "it grows, but not yet by more than workers may copy of what they share"
    return MemoryGrowth(
        verdict=verdict,
        num_moments=len(points),
        num_batches=span,
        bytes_per_1000=1000 * theil_sen(batches.tolist(), memory.tolist()),
        early_bytes_per_1000=1000 * early_slope,
        late_bytes_per_1000=1000 * late_slope,
        noise_bytes=noise,
        why=why,
    )


def _judge(
    *, early_bytes: float, late_bytes: float, risen_bytes: float, stepped_bytes: float, small: float, has_fallen: bool
) -> tuple[Verdict, str]:
    if risen_bytes <= small:  # also a saw's teeth: they rise, but none is higher than the one before
        return "plateau", "it is not higher in the second half than it was in the first"
    if max(late_bytes, stepped_bytes) <= max(small, HAS_STOPPED * early_bytes):
        return "plateau", "it grew in the first half and has stopped"
    if has_fallen:
        return "undecided", "it rises and falls, and rose higher than before: more batches would tell"
    if late_bytes > small and late_bytes >= STILL_GROWS * early_bytes:
        return "leak", "it grows in the second half as it did in the first"
    return "undecided", "it grows more slowly than at first, but has not stopped: more batches would tell"


def _line(batches: npt.NDArray[np.float64], memory: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Slope, and the median distance from the line."""
    if batches[0] == batches[-1]:
        return 0.0, float(np.median(np.abs(memory - np.median(memory))))
    slope = theil_sen(batches.tolist(), memory.tolist())
    left = memory - slope * batches
    return slope, float(np.median(np.abs(left - np.median(left))))


def _end_to_end(memory: npt.NDArray[np.float64]) -> float:
    """How much higher the last quarter lies than the first: growth in steps, which slopes between neighbours miss."""
    quarter = max(1, len(memory) // 4)
    return float(np.median(memory[-quarter:]) - np.median(memory[:quarter]))
