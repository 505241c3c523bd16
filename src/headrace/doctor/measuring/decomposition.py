"""Where the time of a step goes: the real loop against runs from which one thing is left out at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from headrace.doctor.measuring.arms import (
    arms_of,
    batch_samples,
    difference_s,
    log_ratio,
    ratio,
    runs_of,
    unpaired_ratio,
)
from headrace.doctor.measuring.model import Decomposition, Estimate, RoundRun
from headrace.doctor.meters.page_cache import CacheLabel
from headrace.doctor.statistics.interval import Interval

__all__ = ["decompose", "noise_of"]

ALONE = ("L", "L accounted", "L pilot")
"""Rounds of the loader alone, the best first: accounting costs it something, so that it is at least so fast."""


def decompose(runs: Sequence[RoundRun], cache: CacheLabel) -> Decomposition | None:
    """Takes the step apart: compute + transfer + interference + waiting = total.

    Args:
        runs: Of the arms I and C, and N, Ct and L as far as they ran.
        cache: Under which they ran.

    Returns:
        None if I and C have no block together: nothing can be said about what data cost the loop.
    """
    supply_to_need = log_ratio(runs, "I", "C")
    if supply_to_need is None:
        return None
    arms = {arm.name: arm for arm in arms_of(runs, cache)}
    size = batch_samples(runs_of(runs, "I"))
    transfer = difference_s(runs, "Ct", "C", size=size)
    interference = difference_s(runs, "N", "C", size=size)
    waiting = difference_s(runs, "I", "C" if interference is None else "N", size=size)
    if waiting is None:  # the only rounds of N that ran have no partner
        interference, waiting = None, difference_s(runs, "I", "C", size=size)
    if transfer is not None and waiting is not None:
        waiting = _shifted(waiting, -transfer.value)
    use = ratio(supply_to_need)
    paired = log_ratio(runs, "L", "C")
    supply = paired or next(filter(None, (unpaired_ratio(runs, arm, "C") for arm in ALONE)), None)
    total_s, compute_s = size / arms["I"].rounds.mean_per_s, size / arms["C"].rounds.mean_per_s
    return Decomposition(
        total_s=dataclasses.replace(arms["I"].step_s, value=total_s),
        compute_s=Estimate(value=compute_s, interval=_scaled(arms["C"].rounds.interval_per_s, size)),
        transfer_s=transfer,
        interference_s=interference,
        waiting_s=waiting or Estimate(value=total_s - compute_s),
        harmless_s=None,
        utilisation=use,
        headroom=Estimate(value=1 / use.value - 1, interval=_inverse(use.interval)),
        supply_ratio=None if supply is None else ratio(supply),
        is_supply_paired=paired is not None,
        overlap=None if paired is None else _overlap(size / arms["L"].rounds.mean_per_s, compute_s, total_s),
    )


def noise_of(runs: Sequence[RoundRun], present: str) -> tuple[Estimate, float] | None:
    """(Ratio of two entries of the present setting, the log ratio that chance stays below with 95 % confidence)."""
    effect = log_ratio(runs, present, present, above_is_control=True)
    return None if effect is None else (ratio(effect), effect.interval_90.farthest)


def _overlap(loader_s: float, compute_s: float, total_s: float) -> float | None:
    """1: the longer of the two hides the other; 0: one after the other. None: one is too short to tell."""
    serial_s, longer_s = loader_s + compute_s, max(loader_s, compute_s)
    if serial_s - longer_s < 0.02 * serial_s:
        return None
    return (serial_s - total_s) / (serial_s - longer_s)


def _shifted(estimate: Estimate, by: float) -> Estimate:
    interval = estimate.interval
    return Estimate(value=estimate.value + by, interval=Interval(interval.low + by, interval.high + by))


def _scaled(rates: Interval, size: float) -> Interval:
    """Seconds of a step from samples per second."""
    return Interval(size / rates.high, size / rates.low if rates.low > 0 else float("inf"))


def _inverse(use: Interval) -> Interval:
    """Headroom from utilisation."""
    return Interval(
        1 / use.high - 1 if use.high > 0 else float("inf"), 1 / use.low - 1 if use.low > 0 else float("inf")
    )
