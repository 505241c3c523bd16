"""Quantiles of the waits inside one round, with intervals that know that neighbouring steps are alike."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.doctor.statistics.interval import Interval

__all__ = ["QuantileEstimate", "quantiles"]

QUANTILES = (0.5, 0.9, 0.99)
NUM_RESAMPLES = 1_000
"""The ends of an interval are the 25th least and greatest: another seed moves them by few per cent of its width."""
FEWEST_BLOCKS = 5
"""Fewer stretches cannot be put together in enough different ways: the interval is then 0 to infinity."""
CHUNK_STEPS = 2_000_000
"""Resampled steps that are held at a time: 16 MB."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuantileEstimate:
    """One quantile of the waits of a round."""

    quantile: float
    """0.99: the wait that 99 of 100 steps stay within."""
    wait_s: float
    interval_s: Interval
    """Holds the quantile of an endless round of this kind with 95 % confidence. The upper end is infinite if the steps
    are so few that the quantile may be longer than every wait that was seen."""
    block_length: int
    """Steps that were drawn together."""


def quantiles(
    waits_s: Sequence[float],
    *,
    in_flight: int,
    which: Sequence[float] = QUANTILES,
    seed: int = 0,
) -> tuple[QuantileEstimate, ...]:
    """Estimates quantiles of the waits by the moving-block bootstrap.

    Steps are drawn in stretches of neighbours, so that what neighbours share stays together. A stretch is as long as
    the batches in flight, within which workers influence each other, and at least the cube root of the number of steps.
    Intervals hold for this round; another round may differ by more, which is what rounds.py is about.

    Args:
        waits_s: One per step of the steady state, in order; at least one.
        in_flight: Workers times batches prefetched by each, plus batches waiting in queues; 1 without workers.
        which: Quantiles, each between 0 and 1.
        seed: Of the draws.

    Source: H. R. Künsch, The jackknife and the bootstrap for general stationary observations, 1989; length: Hall,
        Horowitz and Jing, On blocking rules for the bootstrap with dependent data, 1995.
    """
    waits = np.asarray(waits_s, dtype=np.float64)
    if waits.size == 0:
        raise ValueError("quantiles need at least one wait")
    length = max(in_flight, math.ceil(waits.size ** (1 / 3)))
    seen = np.quantile(waits, which)
    resampled = _resampled(waits, length, which, seed) if waits.size >= FEWEST_BLOCKS * length else None
    return tuple(
        QuantileEstimate(
            quantile=quantile,
            wait_s=float(seen[place]),
            interval_s=_interval(None if resampled is None else resampled[place], quantile, waits.size / length),
            block_length=length,
        )
        for place, quantile in enumerate(which)
    )


def _resampled(waits: NDArray[np.float64], length: int, which: Sequence[float], seed: int) -> NDArray[np.float64]:
    """The quantiles of all resamples, (num_quantiles, NUM_RESAMPLES)."""
    draws = np.random.default_rng(seed)
    num_stretches = math.ceil(waits.size / length)
    found = []
    left = NUM_RESAMPLES
    while left:
        num = min(left, max(1, CHUNK_STEPS // waits.size))
        starts = draws.integers(waits.size - length + 1, size=(num, num_stretches, 1))
        resamples = waits[(starts + np.arange(length)).reshape(num, -1)[:, : waits.size]]
        found.append(np.quantile(resamples, which, axis=1))
        left -= num
    return np.concatenate(found, axis=1)


def _interval(resampled: NDArray[np.float64] | None, quantile: float, num_stretches: float) -> Interval:
    """The middle 95 % of the resampled quantiles."""
    if resampled is None:
        return Interval(0.0, math.inf)
    low, high = np.quantile(resampled, (0.025, 0.975))
    # No resample holds a wait longer than the longest seen. It is shorter than the quantile with probability
    # quantile**n for n independent steps; stretches are nearly independent, steps of one stretch are alike.
    may_be_longer = quantile**num_stretches > 0.025
    return Interval(float(low), math.inf if may_be_longer else float(high))
