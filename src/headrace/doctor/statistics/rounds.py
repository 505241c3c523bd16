"""Rounds of one setting: all values, median, interval of the rate, and what makes them doubtful."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.schedule import Slot
from headrace.doctor.statistics.student import t_quantile

__all__ = ["Doubt", "Round", "Rounds", "describe", "rounds_for"]

FEWEST_ROUNDS = 5
"""With fewer, Student's quantile is above 3: the interval then tells of its own uncertainty more than of the rate."""
WIDEST_SPREAD = 0.10
"""Standard deviation over mean from which pyperf calls a benchmark unstable."""
FARTHEST_EXTREME = 0.50
"""Distance of the fastest or slowest value from the mean, as a share of it, from which pyperf calls a benchmark
unstable."""
OUTLYING = 10.0
"""Robust standard deviations (1.4826 MAD) from the median: hyperfine's limit. Of 100 healthy settings with normal noise
it marks a round in 3 if they have 5 rounds and in 1 if they have 6 (by simulation); the textbook's 3.5 would mark one
in 20 and in 15."""
LEAST_DEVIATION = 0.001
"""Rounds within a thousandth of each other are equal: the robust standard deviation of the logarithm is taken to be no
less."""
MOST_ROUNDS = 1_000
"""Where the search for the number of rounds gives up: nobody waits longer."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round that was measured in a fresh process."""

    slot: Slot
    rate_per_s: float
    """Samples (or pixels, tokens, bytes) per second in the steady state, above 0; the same unit in all rounds of a
    comparison."""
    began_s: float
    """When it began, in seconds of any clock that all rounds share."""

    def __post_init__(self) -> None:
        if not (0 < self.rate_per_s < math.inf):
            raise ValueError(f"a round's rate must be a number above 0, got {self.rate_per_s}")


@dataclasses.dataclass(frozen=True, slots=True)
class Doubt:
    """One reason to distrust the rounds of a setting."""

    kind: Literal["few", "spread", "extreme", "outlier", "imprecise"]
    text: str
    """One sentence for people."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What the rounds of one setting say."""

    rates_per_s: tuple[float, ...]
    """Every value, in the order in which they were measured; nothing is left out."""
    outliers: tuple[int, ...]
    """Positions in `rates_per_s` that lie far from the others. They are counted like all others: what is rare is still
    real."""
    median_per_s: float
    mean_per_s: float
    """The geometric mean, around which the interval lies."""
    interval_per_s: Interval
    """Where the geometric mean of many such rounds lies with 95 % confidence; 0 to infinity for a single round."""
    doubts: tuple[Doubt, ...]
    """Empty: nothing speaks against these numbers."""


def describe(rates_per_s: Sequence[float], *, precision: float = 0.05) -> Rounds:
    """Summarises the rounds of one setting: Student's t interval of the mean log rate, at 95 %.

    Args:
        rates_per_s: One value above 0 per round; at least one.
        precision: Half width of the interval, as a share of the rate, that is wanted. Default 5 %: half of the effect
            that most people would change a setting for.

    Source: t interval, Student 1908; doubts after pyperf's `check` and hyperfine's outliers.
    """
    rates = np.asarray(rates_per_s, dtype=np.float64)
    if rates.size == 0 or not (np.isfinite(rates).all() and (rates > 0).all()):
        raise ValueError(f"rates must be numbers above 0, and at least one, got {list(rates_per_s)}")
    # Sorted, so that sums, and with them the last digit, do not depend on the order of rounds.
    logs = np.sort(np.log(rates))
    mean, deviation = float(logs.mean()), float(logs.std(ddof=1)) if rates.size > 1 else math.inf
    half_width = t_quantile(0.975, rates.size - 1) * deviation / math.sqrt(rates.size) if rates.size > 1 else math.inf
    outliers = _outliers(rates)
    return Rounds(
        rates_per_s=tuple(rates.tolist()),
        outliers=outliers,
        median_per_s=float(np.median(rates)),
        mean_per_s=math.exp(mean),
        interval_per_s=Interval.around(mean, half_width).exp(),
        doubts=tuple(_doubts(rates, outliers, deviation, half_width, precision)),
    )


def rounds_for(precision: float, deviation_log: float) -> int | None:
    """How many rounds bring the 95 % t interval to a half width of `precision`; None: more than anybody waits for.

    Args:
        precision: As a share of the rate.
        deviation_log: Standard deviation of the log rate from round to round.
    """
    for num in range(2, MOST_ROUNDS + 1):
        if t_quantile(0.975, num - 1) * deviation_log / math.sqrt(num) <= math.log1p(precision):
            return num
    return None


def _outliers(rates: np.ndarray) -> tuple[int, ...]:
    """Positions whose log rates are far from the median, measured by the median absolute deviation (Hampel 1974)."""
    logs = np.log(rates)
    distances = np.abs(logs - np.median(logs))
    robust_deviation = max(1.4826 * float(np.median(distances)), LEAST_DEVIATION)
    return tuple(np.flatnonzero(distances > OUTLYING * robust_deviation).tolist())


def _doubts(
    rates: np.ndarray, outliers: tuple[int, ...], deviation: float, half_width: float, precision: float
) -> list[Doubt]:
    """Everything that speaks against the rounds."""
    doubts = []
    if rates.size < FEWEST_ROUNDS:
        doubts.append(Doubt("few", f"{rates.size} of the {FEWEST_ROUNDS} rounds that a rate needs"))
    rates = np.sort(rates)
    mean = float(rates.mean())
    spread = float(rates.std(ddof=1)) / mean if rates.size > 1 else 0.0
    if spread >= WIDEST_SPREAD:
        doubts.append(Doubt("spread", f"rounds spread by {spread:.0%} of their mean"))
    extreme = float(np.abs(rates - mean).max()) / mean
    if extreme >= FARTHEST_EXTREME:
        doubts.append(Doubt("extreme", f"a round lies {extreme:.0%} from the mean"))
    if outliers:
        rounds = ", ".join(str(position + 1) for position in outliers)
        doubts.append(Doubt("outlier", f"far from the others, and counted all the same: round {rounds}"))
    if rates.size > 1 and half_width > math.log1p(precision):
        needed = rounds_for(precision, deviation)
        enough = f"about {needed} rounds would do" if needed else f"more than {MOST_ROUNDS} rounds would be needed"
        doubts.append(
            Doubt("imprecise", f"the rate is known to ±{math.expm1(half_width):.1%}, not ±{precision:.1%}; {enough}")
        )
    return doubts
