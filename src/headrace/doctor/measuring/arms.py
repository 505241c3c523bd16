"""From rounds to arms, and to differences between two arms: one for each half of a mirrored block.

A block runs every arm twice, A C B B C A. Its halves pair a round of one arm with the nearest of the other. A steady drift of
the machine shifts the two halves in opposite directions: it cancels in their mean, and widens the interval instead of
moving it.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from headrace.doctor.measuring.model import Arm, Estimate, RoundRun
from headrace.doctor.meters.page_cache import CacheLabel
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.pairs import Effect, Pairs, bootstrap_effect
from headrace.doctor.statistics.rounds import describe
from headrace.doctor.statistics.student import t_quantile

__all__ = [
    "arms_of",
    "batch_samples",
    "difference_s",
    "effect_of",
    "least_ratio",
    "log_ratio",
    "rate_of",
    "ratio",
    "runs_of",
    "unpaired_ratio",
]

FEWEST_RESAMPLED = 6


def rate_of(run: RoundRun) -> float | None:
    """Samples per second of its steady part; None: it has none."""
    window = None if run.timed is None else run.timed.window
    return window.rate_per_s if window is not None and window.num_samples and window.seconds > 0 else None


def runs_of(runs: Sequence[RoundRun], arm: str, *, is_control: bool = False) -> list[RoundRun]:
    """Rounds of one arm that were timed."""
    return [run for run in runs if run.arm == arm and run.is_control == is_control and rate_of(run) is not None]


def batch_samples(runs: Sequence[RoundRun]) -> float:
    """Samples in a batch, on average over the steady parts; 1 if there is none."""
    windows = [run.timed.window for run in runs if run.timed is not None and run.timed.window is not None]
    num_batches = sum(window.num_batches for window in windows)
    return sum(window.num_samples for window in windows) / num_batches if num_batches else 1.0


def arms_of(runs: Sequence[RoundRun], cache: CacheLabel) -> tuple[Arm, ...]:
    """One arm per name, in the order in which they first ran; the control's rounds count for the setting they repeat."""
    arms = []
    for name in dict.fromkeys(run.arm for run in runs):
        own = [run for run in runs if run.arm == name and rate_of(run) is not None]
        if not own or own[0].timed is None:
            continue
        rounds = describe([rate_of(run) or 0.0 for run in own])
        size, interval = batch_samples(own), rounds.interval_per_s
        arms.append(
            Arm(
                name=name,
                kind=own[0].timed.kind,
                num_workers=own[0].timed.num_workers,
                rounds=rounds,
                step_s=Estimate(
                    value=size / rounds.mean_per_s,
                    interval=Interval(
                        0.0 if interval.high == math.inf else size / interval.high,
                        math.inf if interval.low <= 0 else size / interval.low,
                    ),
                ),
                cache=cache,
                ids=tuple(run.id for run in own),
            )
        )
    return tuple(arms)


def log_ratio(runs: Sequence[RoundRun], above: str, below: str, *, above_is_control: bool = False) -> Effect | None:
    """ln(rate of `above` / rate of `below`) over the halves of blocks; None: in no block did both run."""
    values = _halves(runs, above, below, lambda one, other: math.log(one / other), above_is_control=above_is_control)
    return effect_of(values) if values else None


def least_ratio(runs: Sequence[RoundRun], above: str, below: str) -> float | None:
    """The smallest rate of `above` over rate of `below` of all pairs; None: there is none."""
    values = _halves(runs, above, below, lambda one, other: one / other, above_is_control=False)
    return min(values, default=None)


def effect_of(values: Sequence[float]) -> Effect:
    """The mean of some differences with its intervals.

    From six on by the bootstrap over them; of fewer, whose resamples are too few, by Student's t, which is as right for
    noise of an ordinary shape.
    """
    effect = bootstrap_effect(Pairs(log_ratios=tuple(values)))
    num = effect.num_blocks
    if not 2 <= num < FEWEST_RESAMPLED:
        return effect
    error = effect.deviation / math.sqrt(num)
    return dataclasses.replace(
        effect,
        interval_95=Interval.around(effect.log, t_quantile(0.975, num - 1) * error),
        interval_90=Interval.around(effect.log, t_quantile(0.95, num - 1) * error),
    )


def ratio(effect: Effect, *, minus: float = 0.0) -> Estimate:
    """The ratio of rates, and its interval; 1.1, or a gain of 0.1 with `minus=1`."""
    interval = effect.interval_95.exp()
    return Estimate(value=effect.ratio - minus, interval=Interval(interval.low - minus, interval.high - minus))


def unpaired_ratio(runs: Sequence[RoundRun], above: str, below: str) -> Effect | None:
    """The same over rounds that have no block together: means of logs, with the interval of Welch (1947).

    A drift of the machine between the two does not cancel: for large effects only. None: one of the two did not run.
    """
    first, second = (
        [math.log(rate) for run in runs if run.arm == arm and (rate := rate_of(run)) is not None]
        for arm in (above, below)
    )
    if not first or not second:
        return None
    log = statistics.fmean(first) - statistics.fmean(second)
    reach = {0.95: math.inf, 0.90: math.inf}
    errors = [statistics.variance(one) / len(one) for one in (first, second) if len(one) > 1]
    if len(errors) == 2:
        freedom = min(len(first), len(second)) - 1  # at most what Welch's formula gives
        for confidence in reach:
            reach[confidence] = t_quantile((1 + confidence) / 2, freedom) * math.sqrt(sum(errors))
    return dataclasses.replace(
        effect_of([log]), interval_95=Interval.around(log, reach[0.95]), interval_90=Interval.around(log, reach[0.90])
    )


def difference_s(runs: Sequence[RoundRun], above: str, below: str, *, size: float) -> Estimate | None:
    """Seconds of a step of `above` minus those of `below`, for batches of `size` samples; None: they have no block."""
    values = _halves(runs, above, below, lambda one, other: size / one - size / other, above_is_control=False)
    if not values:
        return None
    effect = effect_of(values)
    return Estimate(value=effect.log, interval=effect.interval_95)


def _halves(
    runs: Sequence[RoundRun],
    above: str,
    below: str,
    value: Callable[[float, float], float],
    *,
    above_is_control: bool,
) -> list[float]:
    """One value per half of a block in which both have a round."""
    found = []
    for block in sorted({run.block for run in runs if run.block is not None}):
        inside = [run for run in runs if run.block == block]
        first = [rate_of(run) for run in inside if run.arm == above and run.is_control == above_is_control]
        second = [rate_of(run) for run in inside if run.arm == below and not run.is_control]
        # By place, failed rounds included: a half of which one round failed says nothing.
        for one, other in zip(first, second, strict=False):
            if one is not None and other is not None:
                found.append(value(one, other))
    return found
