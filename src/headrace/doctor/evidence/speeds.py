"""How fast two loaders are beside each other."""

from __future__ import annotations

import dataclasses
from typing import Literal

__all__ = ["SpeedRatio"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRatio:
    """Both timed alone, in turn, each round in a fresh process; what nobody takes time for is a training step."""

    rates_a: tuple[float, ...]
    """Samples per second of every round of A, its control among them, over whole epochs: their starts are in it."""
    rates_b: tuple[float, ...]
    outcome: Literal["same", "faster", "slower", "inconclusive"]
    """Of B."""
    ratio: float | None
    """Rate of B over that of A; None: there is no block in which both ran."""
    interval: tuple[float, float] | None
    """Holds the true ratio with 95 % confidence; None: too few blocks to say."""
    noise: float | None
    """What two entries of A differed by at most, as a ratio; None: too few blocks to say."""
    num_blocks: int
    why: str = ""
    """What is in the way of more: a loader that does not run alone, or time."""
    more_s: float | None = None
    """Seconds that would probably settle what is inconclusive; None: not known, or settled."""
