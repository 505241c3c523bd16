"""What the times of a run look like: a batch that holds up others, a slow worker, few slow samples, bursts, starts of epochs.

Pure: numbers in, numbers out. A pattern is no cause yet; what it would cost to be without it only an experiment says.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import statistics
from collections.abc import Sequence

from headrace.doctor.statistics.period import Period, period
from headrace.doctor.timing.timed import BatchMade, EpochStart, Steps

__all__ = [
    "Bursts", "SlowSamples", "SlowWorker", "bursts", "cores_busy", "head_of_line_share", "median_ready_ahead_s",
    "runnable_per_core", "slow_samples", "slow_worker", "start_share", "tail_share", "worker_medians_s", "worker_period",
]  # fmt: skip

TAIL = 0.01
"""The worst steps: as many as a run of a hundred has one of."""
MANY_TIMES = 10.0
"""A sample that takes so many times what is usual is slow for a reason of its own; sizes and caches give a factor of a few."""
GAP_TIMES = 5.0
"""A step that takes so many times the median one: an evaluation, a checkpoint, not the spread of one kind of step."""
LARGEST_P = 0.01
LEAST_RATIO = 1.25
"""A worker that takes less than a quarter longer than the others is made up for by what is prepared ahead."""


# The order in which batches are handed over.


def head_of_line_share(steps: Steps, batches_made: Sequence[BatchMade]) -> float | None:
    """Returns the part of all waiting during which the next batch was not ready and a later one was, 0 to 1.

    Near 1: the loop waits for the order, not for work; near 0: nothing was ready. First batches of epochs are left out.

    Returns:
        None: nothing was noted in workers. 0 if nobody waited.
    """
    made_s = {one.batch: one.made_s for one in batches_made}
    if not made_s:
        return None
    waited_s = blocked_s = 0.0
    later_s = math.inf
    for place in range(len(steps.got_s) - 1, -1, -1):  # from the end, so that the earliest later batch is known
        asked, got = steps.asked_s[place], steps.got_s[place]
        if not _is_first(steps, place):
            waited_s += got - asked
            blocked_s += max(0.0, min(got, made_s.get(place, asked)) - max(asked, later_s))
        else:
            later_s = math.inf  # another epoch's batches stand in no queue with these
            continue
        later_s = min(later_s, made_s.get(place, math.inf))
    return blocked_s / waited_s if waited_s > 0 else 0.0


def _is_first(steps: Steps, place: int) -> bool:
    return place == 0 or steps.epochs[place] != steps.epochs[place - 1]


def median_ready_ahead_s(steps: Steps, batches_made: Sequence[BatchMade]) -> float | None:
    """Returns how long a batch usually is ready before it is asked for; 0: the loop comes first. None: nothing noted."""
    ahead = [
        max(0.0, steps.asked_s[one.batch] - one.made_s) for one in batches_made if 0 <= one.batch < len(steps.asked_s)
    ]
    return statistics.median(ahead) if ahead else None


# Workers.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlowWorker:
    """One worker that takes longer than the others."""

    worker: int
    median_s: float
    """Of its batches."""
    others_s: float
    """Median of all other batches."""
    p: float
    """How often chance would give such a difference between places in the turn."""


def worker_medians_s(batches_made: Sequence[BatchMade]) -> dict[int, float]:
    """Returns the median seconds of making a batch, by worker."""
    seconds = collections.defaultdict[int, list[float]](list)
    for one in batches_made:
        seconds[one.worker].append(one.made_s - one.began_s)
    return {worker: statistics.median(of) for worker, of in sorted(seconds.items())}


def worker_period(
    batches_made: Sequence[BatchMade], epochs: Sequence[int] = ()
) -> tuple[Period, tuple[int, ...]] | None:
    """Tests whether places in the turn of the workers differ, by the seconds of making.

    Args:
        batches_made: In any order.
        epochs: Of each batch, as in `Steps`; empty: all are of one.

    Returns:
        The period, and the worker at each place of the turn. None: too few turns, or workers that take no turns.
    """
    turns: list[BatchMade] = []
    by_epoch = collections.defaultdict[int, list[BatchMade]](list)
    for one in sorted(batches_made, key=lambda one: one.batch):
        by_epoch[epochs[one.batch] if one.batch < len(epochs) else 0].append(one)
    num_workers = len({one.worker for one in batches_made})
    for several in by_epoch.values():  # a turn begins anew with each epoch
        turns += several[: len(several) // max(num_workers, 1) * num_workers]
    order = tuple(one.worker for one in turns[:num_workers])
    if any(one.worker != order[place % num_workers] for place, one in enumerate(turns)):
        return None
    found = period([one.made_s - one.began_s for one in turns], num_workers=num_workers)
    return None if found is None else (found, order)


def slow_worker(batches_made: Sequence[BatchMade], epochs: Sequence[int] = ()) -> SlowWorker | None:
    """Returns the worker that is slower than the others, turn after turn; None: there is none, or it cannot be told.

    A sampler that gives every n-th batch the long samples looks the same.
    """
    tested = worker_period(batches_made, epochs)
    if tested is None or tested[0].p > LARGEST_P:
        return None
    medians = worker_medians_s(batches_made)
    worker = max(medians, key=medians.__getitem__)
    others_s = statistics.median(one.made_s - one.began_s for one in batches_made if one.worker != worker)
    if medians[worker] < LEAST_RATIO * others_s:
        return None
    return SlowWorker(worker=worker, median_s=medians[worker], others_s=others_s, p=tested[0].p)


def runnable_per_core(*, num_workers: int, threads_per_worker: int, loop_threads: int, num_cores: float) -> float:
    """Returns how many threads want a core if everybody has work, per core that may be used; above 1 they take turns."""
    return (num_workers * threads_per_worker + loop_threads) / num_cores


def cores_busy(*, cpu_s: float, wall_s: float) -> float:
    """Returns how many cores were kept busy on average; near the usable ones: there is no core left for more workers."""
    return cpu_s / wall_s if wall_s > 0 else 0.0


# Samples.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlowSamples:
    """Few samples that take many times what is usual."""

    num_batches: int
    """Batches that have one."""
    usual_s: float
    """Median over batches of the slowest sample."""
    slowest_s: float
    share: float
    """Part of the seconds in data sets that these samples take."""


def slow_samples(batches_made: Sequence[BatchMade]) -> SlowSamples | None:
    """Returns what few slow samples cost; None: there are none, more than one batch in ten has one, or nothing is known."""
    slowest = [one.slowest_sample_s for one in batches_made if one.slowest_sample_s is not None]
    if not slowest:
        return None
    usual_s = statistics.median(slowest)
    slow = [seconds for seconds in slowest if seconds > MANY_TIMES * usual_s]
    if not slow or usual_s <= 0 or len(slow) > len(slowest) / 10:
        return None
    total_s = sum(one.fetched_s - one.began_s for one in batches_made)
    return SlowSamples(
        num_batches=len(slow),
        usual_s=usual_s,
        slowest_s=max(slow),
        share=min(1.0, sum(slow) / total_s) if total_s > 0 else 0.0,
    )


def tail_share(waits_s: Sequence[float], *, worst: float = TAIL) -> float:
    """Returns the part of all waiting that the worst steps cause, at least one step; 0 if nobody waited.

    Near `worst`: all wait alike. Near 1: few steps wait, and all others do not.
    """
    total_s = sum(waits_s)
    num = max(1, round(worst * len(waits_s)))
    return sum(sorted(waits_s, reverse=True)[:num]) / total_s if total_s > 0 else 0.0


# The consumer and epochs.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """How uneven the consumer's steps are."""

    variation: float
    """Standard deviation over mean of the consumer's seconds; 0: all alike."""
    median_s: float
    num_gaps: int
    """Steps that take many times the median: the consumer does something else, and what is prepared ahead fills up."""
    gap_share: float
    """Part of the consumer's seconds in gaps."""


def bursts(steps: Steps) -> Bursts | None:
    """Returns how uneven the consumer is; the last step of an epoch, which holds its end, is left out. None: no steps."""
    seconds = [
        own
        for place, own in enumerate(steps.consumer_s)
        if place + 1 < len(steps.epochs) and steps.epochs[place + 1] == steps.epochs[place]
    ]
    if not seconds:
        return None
    mean_s, median_s = statistics.fmean(seconds), statistics.median(seconds)
    gaps = [own for own in seconds if own > GAP_TIMES * median_s]
    return Bursts(
        variation=statistics.pstdev(seconds) / mean_s if mean_s > 0 else 0.0,
        median_s=median_s,
        num_gaps=len(gaps),
        gap_share=sum(gaps) / sum(seconds) if mean_s > 0 else 0.0,
    )


def start_share(starts: Sequence[EpochStart], *, total_s: float) -> float:
    """Returns the part of a run's seconds in which it waited for the first batches of epochs, the very first one left out.

    Workers that persist are started once: then the later starts are what matters, and they are short.
    """
    later_s = sum(one.make_s + one.first_batch_s for one in starts if one.epoch > 0)
    return min(1.0, later_s / total_s) if total_s > 0 else 0.0
