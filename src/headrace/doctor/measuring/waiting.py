"""The waits of the real loop: how long, how often, caused by how few steps, and who the loop waits for."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from headrace.doctor.measuring.arms import effect_of, rate_of
from headrace.doctor.measuring.model import Estimate, RoundRun, Waiting
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.period import Period, period
from headrace.doctor.statistics.waits import quantiles
from headrace.doctor.timing.patterns import head_of_line_share, tail_share
from headrace.doctor.timing.timed import Timed

__all__ = ["find_waiting", "inner_steps"]

STARVED_S, STARVED = 1e-3, 0.05
"""A wait counts from a millisecond on, and from 5 % of the median step of the consumer on."""
MOST_STEPS = 3_000
"""Steps that quantiles are taken of, the last ones: more make them hardly surer, and take seconds."""
LOOPS = ("I", "I accounted", "I pilot")
FEWEST_ROUNDS, STRETCHES = 3, 4
"""Of fewer rounds, each is taken as four stretches: no replication, but the waits say in every step what they are."""
HELD = 0.8


def inner_steps(timed: Timed) -> list[int]:
    """Places of the steps in the steady part, first batches of epochs left out: their wait is a start."""
    if timed.window is None:
        return []
    epochs = timed.steps.epochs
    return [at for at in timed.window.places if at > 0 and epochs[at] == epochs[at - 1]]


def find_waiting(runs: Sequence[RoundRun]) -> Waiting | None:
    """Describes the waits of all rounds of I.

    Args:
        runs: All rounds; an accounted round of I adds what only the workers' side shows.

    Returns:
        None if the real loop did not run.
    """
    # What accounting costs is in the workers, and small: its round counts as well.
    loops = [run.timed for run in runs if run.arm in LOOPS and rate_of(run) is not None and run.timed is not None]
    if not loops:
        return None
    waits, steps, shares = list[float](), list[float](), list[float]()
    for timed in loops:
        places, all_waits, all_steps = inner_steps(timed), timed.steps.waits_s, timed.steps.consumer_s
        own = [all_waits[at] for at in places]
        consumed = [all_steps[at] for at in places]
        waits += own
        steps += consumed
        shares += _shares(own, consumed, 1 if len(loops) >= FEWEST_ROUNDS else STRETCHES)
    if not waits:
        return None
    total_s = max(sum(waits), 1e-12)
    limit_s = max(STARVED_S, STARVED * statistics.median(steps))
    ordered = np.sort(waits)[::-1]
    num_holding = int(np.searchsorted(np.cumsum(ordered), HELD * total_s)) + 1
    accounted = next((run.timed for run in runs if run.arm == "I accounted" and rate_of(run) and run.timed), None)
    head, ahead_s = _order(accounted) if accounted is not None else (None, None)
    return Waiting(
        quantiles=quantiles(waits[-MOST_STEPS:], in_flight=max(1, loops[0].in_flight)),
        longest_s=float(ordered[0]),
        share=_mean(shares),
        starved_share=sum(wait > limit_s for wait in waits) / len(waits),
        tail_share=tail_share(waits),
        holding_share=min(1.0, num_holding / len(waits)),
        period=None if accounted is None else _period(accounted),
        head_of_line_share=head,
        ready_ahead_s=ahead_s,
    )


def _shares(waits: Sequence[float], consumed: Sequence[float], num: int) -> list[float]:
    """Part of the time that was waited for, of each of some stretches of one round."""
    found = []
    for part in range(num):
        inside = slice(part * len(waits) // num, (part + 1) * len(waits) // num)
        total_s = sum(waits[inside]) + sum(consumed[inside])
        if total_s > 0:
            found.append(sum(waits[inside]) / total_s)
    return found


def _mean(shares: Sequence[float]) -> Estimate:
    effect = effect_of(shares)
    return Estimate(
        value=effect.log, interval=Interval(max(0.0, effect.interval_95.low), min(1.0, effect.interval_95.high))
    )


def _period(timed: Timed) -> Period | None:
    """Of the seconds that batches took in their workers, whole turns from a batch of worker 0 on."""
    if timed.num_workers < 2 or not timed.batches_made:
        return None
    made = sorted(timed.batches_made, key=lambda one: one.batch)
    first = next((at for at, one in enumerate(made) if one.worker == 0), 0)
    return period([one.made_s - one.began_s for one in made[first:]], num_workers=timed.num_workers)


def _order(timed: Timed) -> tuple[float | None, float | None]:
    """(Part of the waiting while a later batch was ready, median seconds that a batch is ready before it is taken)."""
    made_s = {one.batch: one.made_s for one in timed.batches_made}
    places = [at for at in inner_steps(timed) if at in made_s]
    if not places:
        return None, None
    ahead_s = statistics.median(max(0.0, timed.steps.got_s[at] - made_s[at]) for at in places)
    return head_of_line_share(timed.steps, timed.batches_made, frozenset(places)), ahead_s
