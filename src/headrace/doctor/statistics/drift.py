"""Drift: did the machine itself become faster or slower while the rounds were measured?"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

import numpy as np

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.slopes import slopes_between

__all__ = ["Drift", "theil_sen"]

FEWEST_ROUNDS = 6
"""Of fewer rounds, the normal approximation of Kendall's S says nothing: the interval is infinite."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The trend of the present setting's log rate over the measurement."""

    log_per_s: float
    """Slope of the log rate; below 0: the machine became slower."""
    interval_log_per_s: Interval
    """Holds the slope with 95 % confidence; infinite for fewer than 6 rounds."""
    duration_s: float
    """From the first to the last of the rounds."""

    @property
    def total_log(self) -> float:
        """How much the log rate changed from the first round to the last."""
        return self.log_per_s * self.duration_s

    @property
    def is_certain(self) -> bool:
        """True if the interval leaves out zero: chance alone seldom gives such a trend."""
        return self.interval_log_per_s.lies_outside(0.0)


def theil_sen(began_s: Sequence[float], rates_per_s: Sequence[float]) -> Drift:
    """Estimates the trend by the median of the slopes between all pairs of rounds.

    Up to 29 % of the rounds may be outliers without moving it far. The interval supposes that rounds without a trend
    could have come in any order; slow waves of the machine count as trend, which is what they are here.

    Args:
        began_s: When each round of one setting began, at least two different times.
        rates_per_s: Its rate, above 0, in the same order.

    Source: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968.
    """
    times, logs = np.asarray(began_s, dtype=np.float64), np.log(np.asarray(rates_per_s, dtype=np.float64))
    slopes = slopes_between(times, logs)
    if not slopes.size:
        raise ValueError("a drift needs rounds at two different times")
    return Drift(
        log_per_s=float(np.median(slopes)),
        interval_log_per_s=_interval(slopes, times.size),
        duration_s=float(times.max() - times.min()),
    )


def _interval(slopes: np.ndarray, num: int) -> Interval:
    """The order statistics of the slopes between which the true one lies with 95 % confidence."""
    if num < FEWEST_ROUNDS:
        return Interval(-math.inf, math.inf)
    # The standard deviation of Kendall's S without ties; half of 1.96 of them to either side of the middle rank.
    reach = statistics.NormalDist().inv_cdf(0.975) * math.sqrt(num * (num - 1) * (2 * num + 5) / 18)
    low = max(round((slopes.size - reach) / 2) - 1, 0)
    high = min(round((slopes.size + reach) / 2), slopes.size - 1)
    return Interval(float(slopes[low]), float(slopes[high]))
