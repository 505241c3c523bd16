"""One round of one setting, as tuning looks at it: a rate with the starts of epochs in it, and the waits."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable

import numpy as np

from headrace.doctor.timing.rates import epoch_rate
from headrace.doctor.timing.setting import Setting
from headrace.doctor.timing.timed import Kind, Timed
from headrace.doctor.tuning.choice import MILLISECOND

__all__ = ["Measure", "Trial", "trial_of"]

STARVED = 0.05
"""A wait of more than this part of the median step, and of more than a millisecond, is noticed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one round showed."""

    setting: Setting
    kind: Kind
    rate_per_s: float | None
    """Samples per second over whole epochs; None: the round failed."""
    began_s: float = 0.0
    failure: str = ""
    starved_share: float | None = None
    p99_wait_s: float | None = None
    batch_bytes: int = 0
    computing_share: float | None = None
    """Part of the time of those who prepare samples in which they compute."""


Measure = Callable[[Kind, Setting], Trial]
"""Runs one round in a fresh process."""


def trial_of(timed: Timed, num_samples: int | None) -> Trial:
    """Returns what a run says."""
    rate = epoch_rate(timed, num_samples)
    starved = p99 = None
    if timed.window is not None and timed.kind == "I":
        starved, p99 = _waits(timed)
    num_batches = len(timed.steps.num_samples)
    return Trial(
        setting=timed.setting,
        kind=timed.kind,
        rate_per_s=rate,
        began_s=timed.began_s,
        failure="" if rate is not None else timed.why or "too few batches for a rate",
        starved_share=starved,
        p99_wait_s=p99,
        batch_bytes=timed.amounts.num_bytes // max(num_batches, 1),
        computing_share=_computing_share(timed),
    )


def _waits(timed: Timed) -> tuple[float | None, float | None]:
    """(share of starved steps, 99 % quantile) of the steady part, the first batches of epochs left out."""
    assert timed.window is not None
    waits, consumed, epochs = timed.steps.waits_s, timed.steps.consumer_s, timed.steps.epochs
    places = [
        place for place in range(timed.window.first, timed.window.last) if place and epochs[place] == epochs[place - 1]
    ]
    if not places:
        return None, None
    chosen = np.asarray([waits[place] for place in places])
    least = max(MILLISECOND, STARVED * statistics.median(consumed[place] for place in places))
    return float((chosen > least).mean()), float(np.quantile(chosen, 0.99))


def _computing_share(timed: Timed) -> float | None:
    """None for workers that are too many for the time to be told."""
    steps = timed.steps
    if not steps.asked_s:
        return None
    wall_s = steps.end_s - steps.asked_s[0]
    if wall_s <= 0:
        return None
    if timed.num_workers == 0:
        return min(timed.consumer_cpu_s / wall_s, 1.0) if timed.kind == "L" else None
    return min(timed.workers_cpu_s / (timed.num_workers * wall_s), 1.0)
