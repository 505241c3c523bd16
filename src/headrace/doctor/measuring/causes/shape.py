"""Causes that show in how the waits are spread: over the epoch, over the workers, over the samples, over the steps."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from headrace.doctor.measuring.causes.enough import CLEARLY, supply_beside_the_step
from headrace.doctor.measuring.causes.gains import accounted, evidence, loop_gain, rounds_of
from headrace.doctor.measuring.model import CauseFound, Estimate, Measurement
from headrace.doctor.measuring.waiting import inner_steps
from headrace.doctor.measuring.wording import percent, seconds_text
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.timed import Timed

__all__ = ["burst", "epoch_start", "slow_worker", "tail"]

MATTERS = 0.05
FEWEST_BATCHES = 6
"""Of each worker: a median of fewer is chance."""
SLOW = 1.5
"""Times the median of the other workers."""
FAR = 3.0
"""Times the median, from which a batch is a straggler."""
STALL_S = {"quiet": 0.005, "unknown": 0.02, "noisy": 0.02, "loud": 0.06}
"""Seconds by which a batch is late where a worker had to wait for a core: no straggler is late by so little."""
SELDOM = 0.15
"""Share of the batches that stragglers may be at most; of more, they are no exception."""
TAIL = 0.25
"""Share of all the workers' time that stragglers take beyond the median, from which they matter."""
ONE_SAMPLE = 0.5
"""Part of a batch's time that its slowest sample takes, in the median, from which single samples make batches slow."""
UNEVEN = 0.5
"""Standard deviation of the steps over their mean, from which their lengths differ."""


def epoch_start(m: Measurement) -> CauseFound | None:
    """The loop stands still at the beginning of each epoch, for more than matters of an epoch."""
    excess = _start_excess_s(m)
    d = m.decomposition
    if not excess or d is None:
        return None
    num_batches = m.num_batches or _longest_epoch(m)
    if not num_batches:
        return None
    steady_s = num_batches * d.total_s.value
    if any(timed.window is not None and timed.window.has_starts for timed in rounds_of(m, "I")):
        steady_s -= min(statistics.median(excess), 0.99 * steady_s)  # the starts are in these steps
    low, middle = min(excess) / steady_s, statistics.median(excess) / steady_s
    if middle < MATTERS or low < MATTERS / 2:
        return None
    start_s = statistics.median(excess)
    remedy = []
    if m.num_workers and not m.is_persistent:
        remedy.append("persistent_workers=True: workers stay alive from epoch to epoch")
    remedy += [
        "longer epochs: repeat the data several times within one (a sampler with replacement, or num_samples)",
        "hr.DataLoader(..., persistent_workers=True) loads the first batches of an epoch while the one before ends",
    ]
    return CauseFound(
        cause="epoch start",
        text=f"Each epoch begins with {seconds_text(start_s)} of standing still, {percent(middle)} on top of its "
        f"{seconds_text(steady_s)} of steps.",
        gain=Estimate(value=middle, interval=Interval(low, max(excess) / steady_s)),
        basis="observed",
        evidence=evidence(m, "I", f"plain workers={m.num_workers}"),
        remedy=tuple(remedy),
    )


def _start_excess_s(m: Measurement) -> list[float]:
    """By how much the first batch of a later epoch took longer than a batch in its middle, in each round that shows it."""
    found = []
    for timed in (*rounds_of(m, "I"), *rounds_of(m, f"plain workers={m.num_workers}")):
        waits = timed.steps.waits_s
        typical_s = statistics.median(waits[at] for at in inner_steps(timed)) if inner_steps(timed) else 0.0
        later = [start.make_s + start.first_batch_s - typical_s for start in timed.starts if start.epoch > 0]
        if later:
            found.append(max(0.0, statistics.median(later)))
    return found


def _longest_epoch(m: Measurement) -> int | None:
    """Batches of an epoch that was seen from beginning to end."""
    whole = [
        timed.steps.epochs.count(epoch) for timed in rounds_of(m, "I") for epoch in sorted(set(timed.steps.epochs))[:-1]
    ]
    return max(whole, default=None)


def slow_worker(m: Measurement) -> CauseFound | None:
    """One worker takes much longer for its batches than the others do."""
    timed = accounted(m)
    times = _by_worker(timed) if timed is not None else {}
    if timed is None or len(times) < 2 or min(map(len, times.values())) < FEWEST_BATCHES:
        return None
    medians = {worker: statistics.median(own) for worker, own in times.items()}
    slowest = max(medians, key=medians.__getitem__)
    rest = [one for worker, own in times.items() if worker != slowest for one in own]
    others_s = statistics.median(medians[worker] for worker in medians if worker != slowest)
    # Not only the medians: most of its batches take longer than most of the others'.
    is_apart = np.quantile(times[slowest], 0.25) > np.quantile(rest, 0.75)
    factor = medians[slowest] / max(others_s, 1e-9)
    if factor < SLOW or not is_apart:
        return None
    return CauseFound(
        cause="slow worker",
        text=f"Worker {slowest} takes {factor:.1f} times as long for a batch as the other{'s' if len(times) > 2 else ''} "
        f"({seconds_text(medians[slowest])} against {seconds_text(others_s)}); batches come in order, so all wait for it.",
        gain=loop_gain(m, Estimate(value=factor - 1)),
        basis="accounted",
        evidence=evidence(m, "I accounted", "L accounted"),
        remedy=(
            f"look at what worker {slowest} does differently: worker_init_fn, worker_info.id, a shard or a path of its own",
            "hr.DataLoader hands each batch to the worker that is free, so a slow one holds up only its own",
        ),
    )


def _by_worker(timed: Timed) -> dict[int, list[float]]:
    """Seconds of each worker's batches; its first one, in which it warms up, left out."""
    times: dict[int, list[float]] = {}
    for one in timed.batches_made:
        times.setdefault(one.worker, []).append(one.made_s - one.began_s)
    return {worker: own[1:] for worker, own in times.items()}


def tail(m: Measurement) -> CauseFound | None:
    """Few batches, or single samples within each, take most of the time."""
    times, slowest = _batch_times(m)
    if len(times) < 4 * FEWEST_BATCHES:
        return None
    median_s = statistics.median(times)
    far = [one for one in times if one > max(FAR * median_s, median_s + STALL_S[m.preflight.noise])]
    excess = sum(one - median_s for one in far) / max(sum(times), 1e-12)
    size = m.batch_size or 1
    of_one = statistics.median(one / whole for one, whole in zip(slowest, times, strict=True)) if slowest else 0.0
    # One straggler in one round may be the machine's; then the waits of all rounds have to say the same.
    seldom = min(SELDOM, 0.5 / max(1, m.num_workers))
    is_seen_often = len(far) > 1 or (m.waiting is not None and m.waiting.holding_share <= seldom)
    if far and is_seen_often and excess >= TAIL and len(far) <= SELDOM * len(times):
        text = (
            f"{len(far)} of {len(times)} batches take {seconds_text(statistics.median(far))} instead of "
            f"{seconds_text(median_s)}, and {percent(excess)} of the loader's time: few slow samples hold up all others."
        )
        loader = sum(times) / len(times) / median_s - 1
    elif size >= 4 and of_one >= ONE_SAMPLE:
        text = (
            f"The slowest sample of a batch takes {percent(of_one)} of the batch's time, where one in {size} would take "
            f"{percent(1 / size)}: single samples make batches slow."
        )
        loader = 1 / (1 - of_one) - 1
    else:
        return None
    return CauseFound(
        cause="tail",
        text=text,
        gain=loop_gain(m, Estimate(value=loader)),
        basis="accounted" if slowest else "observed",
        evidence=evidence(m, "I accounted", "L accounted", "L"),
        remedy=(
            "find the slow samples: `headrace diagnose` names the slowest ones; make them smaller beforehand, or leave them out",
            *(
                [
                    "prefetch_factor higher: what is prepared ahead carries the loop over a slow batch; `headrace tune` tries it"
                ]
                if m.num_workers
                else ["num_workers=2: a slow sample then holds up one worker, and not the loop"]
            ),
        ),
    )


def _batch_times(m: Measurement) -> tuple[list[float], list[float]]:
    """(Seconds to make each batch, those of its slowest sample as far as known): in workers, or without as waited for."""
    timed = accounted(m)
    if timed is not None and timed.batches_made:
        # A slow worker is a cause of its own: each worker is measured by its own median.
        own = _by_worker(timed)
        middle_s = statistics.median([statistics.median(one) for one in own.values() if one] or [0.0])
        scale = {worker: middle_s / max(statistics.median(one), 1e-12) for worker, one in own.items() if one}
        made = [one for one in timed.batches_made if one.worker in scale][len(own) :]
        times = [(one.made_s - one.began_s) * scale[one.worker] for one in made]
        slowest = [one.slowest_sample_s * scale[one.worker] for one in made if one.slowest_sample_s is not None]
        return times, slowest if len(slowest) == len(times) else []
    if m.num_workers:
        return [], []
    waits: list[float] = []
    for one in rounds_of(m, "L"):
        all_waits = one.steps.waits_s
        waits += [all_waits[at] for at in inner_steps(one)]
    return waits, []


def burst(m: Measurement) -> CauseFound | None:
    """The loader is fast enough on average, but not for a row of short steps."""
    d = m.decomposition
    supply = supply_beside_the_step(m)
    if d is None or supply is None or supply.value < CLEARLY:
        return None
    steps = _consumer_s(rounds_of(m, "I"))
    if len(steps) < 4 * FEWEST_BATCHES:
        return None
    spread = statistics.pstdev(steps) / max(statistics.fmean(steps), 1e-12)
    if spread < UNEVEN:
        return None
    short_s, long_s = np.quantile(steps, (0.1, 0.99))
    in_flight = rounds_of(m, "I")[0].in_flight
    return CauseFound(
        cause="burst",
        text=f"Steps take from {seconds_text(float(short_s))} to {seconds_text(float(long_s))}: the loader is fast enough on "
        f"average (x{supply.value:.2f} of the need), but {in_flight} batches ahead do not last for a row of short ones.",
        gain=d.headroom,
        basis="observed",
        evidence=evidence(m, "I", "C", "L"),
        remedy=(
            "prefetch_factor higher, so that long steps fill what short ones take; `headrace tune` finds the smallest that does",
            "more workers, if memory for more batches ahead is scarce",
        ),
    )


def _consumer_s(loops: Sequence[Timed]) -> list[float]:
    return [timed.steps.consumer_s[at] for timed in loops for at in inner_steps(timed)]
