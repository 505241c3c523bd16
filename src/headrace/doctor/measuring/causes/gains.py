"""What the loop would gain if its loader were faster by so much."""

from __future__ import annotations

import math

from headrace.doctor.measuring.arms import rate_of
from headrace.doctor.measuring.model import Estimate, Measurement
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.timed import Timed

__all__ = ["accounted", "evidence", "loop_gain", "rounds_of", "supply"]


def loop_gain(m: Measurement, loader: Estimate, *, in_loop: bool = False) -> Estimate:
    """Gain of the loop from a gain of the loader alone, as shares; of the loader itself where there is no training step.

    Args:
        m: The measurement.
        loader: Gain of the loader alone.
        in_loop: True: what is won lies in the loop's own process, after the step and not beside it, as everything does
            without workers. Beside the step, what is faster than it is not felt.
    """
    in_loop = in_loop or not m.num_workers
    value, interval = _loop_gain(m, loader.value, in_loop=in_loop), loader.interval
    if interval.low == -math.inf:
        return Estimate(value=value)
    low, high = (_loop_gain(m, end, in_loop=in_loop) for end in (interval.low, interval.high))
    return Estimate(value=value, interval=Interval(low, high))


def _loop_gain(m: Measurement, loader: float, *, in_loop: bool) -> float:
    times = _step_times(m)
    if times is None:
        return loader
    speed = 1 + max(loader, -0.99)
    total_s, least_s = times
    if in_loop:
        return total_s / (least_s + max(0.0, total_s - least_s) / speed) - 1
    return total_s / max(least_s, total_s / speed) - 1


def _step_times(m: Measurement) -> tuple[float, float] | None:
    """(A step, the part of it that no loader saves); None: there is no loop.

    Where no rounds of the step alone say the latter, in units of a step: what is not waited.
    """
    d = m.decomposition
    if d is not None:
        beside_s = max(0.0, d.interference_s.value) if d.interference_s is not None else 0.0
        return d.total_s.value, d.compute_s.value + beside_s
    return None if m.waiting is None else (1.0, max(1e-3, 1 - m.waiting.share.value))


def rounds_of(m: Measurement, arm: str) -> list[Timed]:
    """Rounds of one arm that were timed, controls among them."""
    return [run.timed for run in m.runs if run.arm == arm and run.timed is not None and rate_of(run) is not None]


def accounted(m: Measurement) -> Timed | None:
    """The accounted round: of the real loop, else of the loader alone."""
    return next((timed for arm in ("I accounted", "L accounted") for timed in rounds_of(m, arm)), None)


def supply(m: Measurement) -> float | None:
    """Samples per second of the loader alone; None: it did not run alone."""
    return next((arm.rounds.mean_per_s for arm in m.arms if arm.name == "L"), None)


def evidence(m: Measurement, *arms: str) -> tuple[str, ...]:
    """Ids of the rounds of some arms."""
    return tuple(run.id for run in m.runs if run.arm in arms and run.timed is not None)
