"""Causes that lie in the workers themselves: more of them than is good, or than the rest of the machine can bear."""

from __future__ import annotations

import statistics

from headrace.doctor.measuring.causes.gains import evidence, loop_gain, rounds_of, supply
from headrace.doctor.measuring.model import CauseFound, Estimate, Measurement
from headrace.doctor.measuring.plain import fewer_are_faster, rate_with
from headrace.doctor.measuring.wording import bytes_text, milliseconds, percent, rate
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.timed import Timed

__all__ = ["busy_share", "interference", "lock", "memory", "needless_workers", "oversubscription", "transfer"]

MATTERS = 0.05
SATURATED = 0.85
"""Share of the cores' time from which they are all busy."""
THREADS = 1.5
"""Threads that compute at a time in one worker, from which it is more than one."""
HUGE = 2.0
"""Times that a step is longer in the loop, which no ordinary difference between batches makes it."""
TOO_MUCH = 0.5
"""Part of what is free that batches prepared ahead may take: the rest is the trainer's."""
SPARE = 0.02
"""Part of a step below which loading in the loop's own process is not felt."""
TAKES_TURNS = 1.3
"""Times the rate without workers, below which threads bring nothing."""


def busy_share(timed: Timed, cores: int) -> float:
    """Part of all cores' time that the loop and its workers computed."""
    steps = timed.steps
    wall_s = steps.end_s - steps.asked_s[0] if steps.asked_s else 0.0
    return (timed.consumer_cpu_s + timed.workers_cpu_s) / max(wall_s * cores, 1e-9)


def interference(m: Measurement) -> CauseFound | None:
    """The step itself takes longer while workers work beside it."""
    d = m.decomposition
    if d is None:
        return None
    if d.interference_s is None:
        return _interference_seen(m)
    extra, compute_s = d.interference_s, d.compute_s.value
    # Two independent witnesses: the paced loader beside the step, and the step inside the real loop.
    inside = _step_inside_s(m)
    if extra.interval.low <= 0 or extra.value < MATTERS * compute_s or inside - compute_s < extra.value / 2:
        return None
    slower = Estimate(
        value=extra.value / compute_s,
        interval=Interval(extra.interval.low / compute_s, extra.interval.high / compute_s),
    )
    cores = m.preflight.machine.usable_cores
    return CauseFound(
        cause="interference",
        text=f"Workers make the step itself {percent(slower.value)} longer ({milliseconds(extra)}) while it waits for nothing: "
        f"{m.num_workers} workers and the step share {cores} cores, their memory and caches.",
        gain=slower,
        basis="experiment",
        evidence=evidence(m, "N", "C"),
        remedy=_lighter(m),
    )


def _interference_seen(m: Measurement) -> CauseFound | None:
    """Without rounds of N: only where the step is twice as long in every round of the loop as in any of its own.

    Fresh batches may take longer than the kept one, too. So the workers must compute long enough beside the step to explain
    it, and every core must be busy: what they compute is then taken from the step.
    """
    d, loops, alone = m.decomposition, rounds_of(m, "I"), rounds_of(m, "C")
    if d is None or not m.num_workers or not loops or not alone or any(one.device for one in loops):
        return None
    cores, compute_s = m.preflight.machine.usable_cores, d.compute_s.value
    inside = [statistics.fmean(one.steps.consumer_s) for one in loops]
    extra_s = statistics.fmean(inside) - compute_s
    worked_s = statistics.fmean(one.workers_cpu_s / len(one.steps.got_s) for one in loops)
    is_huge = min(inside) > HUGE * max(statistics.fmean(one.steps.consumer_s) for one in alone)
    is_saturated = statistics.median(busy_share(one, cores) for one in loops) >= SATURATED
    if not (is_huge and is_saturated and worked_s >= extra_s / 2):
        return None
    return CauseFound(
        cause="interference",
        text=f"The step takes {1e3 * statistics.fmean(inside):.3g} ms in the loop and {1e3 * compute_s:.3g} ms by itself, while "
        f"{m.num_workers} workers compute {1e3 * worked_s:.3g} ms beside each, and all {cores} cores are busy.",
        gain=Estimate(value=extra_s / compute_s),
        basis="observed",
        evidence=evidence(m, "I", "C"),
        remedy=_lighter(m),
    )


def _lighter(m: Measurement) -> tuple[str, ...]:
    return (
        f"fewer workers (now {m.num_workers}): `headrace tune` finds the fewest that the loop does not wait for",
        "one thread in each worker: torch.set_num_threads(1), cv2.setNumThreads(0) in worker_init_fn",
        "less work per sample: smaller files, work done once beforehand, augmentation on the device",
    )


def _step_inside_s(m: Measurement) -> float:
    """Mean seconds of the step in the real loop."""
    consumed = [sum(timed.steps.consumer_s) / max(1, len(timed.steps.got_s)) for timed in rounds_of(m, "I")]
    return sum(consumed) / len(consumed) if consumed else 0.0


def transfer(m: Measurement) -> CauseFound | None:
    """Copying each batch to the device takes a part of the step that matters."""
    d = m.decomposition
    if d is None or d.transfer_s is None:
        return None
    if d.transfer_s.interval.low <= 0 or d.transfer_s.value < MATTERS * d.compute_s.value:
        return None
    part = d.transfer_s.value / d.compute_s.value
    return CauseFound(
        cause="transfer",
        text=f"Copying a batch to the device takes {milliseconds(d.transfer_s)}, {percent(part)} of the step, while nothing is "
        "computed.",
        gain=Estimate(value=part),
        basis="experiment",
        evidence=evidence(m, "Ct", "C"),
        remedy=(
            "pin_memory=True, and batch.to(device, non_blocking=True): the copy then runs beside the step before",
            "send small types: uint8 images are a quarter of float32 ones; convert and normalise on the device",
        ),
    )


def needless_workers(m: Measurement) -> CauseFound | None:
    """Fewer workers, or none, would do better or as well."""
    if not m.num_workers:
        return None
    fewer = fewer_are_faster(m.plain, m.num_workers)
    gained = _gain_with(m, fewer[0]) if fewer is not None else None
    # What is slower by itself may still be better beside the step.
    if fewer is not None and gained is not None and gained.value > SPARE:
        number, factor = fewer
        who = "none" if number == 0 else str(number)
        return CauseFound(
            cause="needless workers",
            text=f"{_workers(m.num_workers)} deliver less than {who}: the loader alone is x{factor:.2f} as fast with "
            f"num_workers={number}. Handing samples from process to process costs more than working beside each other brings.",
            gain=gained,
            basis="experiment",
            evidence=evidence(m, f"plain workers={number}", f"plain workers={m.num_workers}"),
            remedy=(f"num_workers={number}", 'hr.DataLoader(..., num_workers="auto") finds this by itself'),
        )
    alone, d = rate_with(m.plain, 0), m.decomposition
    if alone is None or d is None:
        return None
    loading = (m.need_per_s.value if m.need_per_s else 0.0) / alone
    if not 0 < loading < SPARE:
        return None
    return CauseFound(
        cause="needless workers",
        text=f"Without workers the loader delivers {rate(alone)}: loading would take {percent(loading)} of the step. "
        f"{_workers(m.num_workers)} are not needed; they cost memory and their start.",
        gain=None,
        basis="experiment",
        evidence=evidence(m, "plain workers=0"),
        remedy=("num_workers=0",),
    )


def _gain_with(m: Measurement, number: int) -> Estimate | None:
    """What the loop would gain with another number of workers, by their rate alone."""
    d, other, size = m.decomposition, rate_with(m.plain, number), m.batch_size or 1
    if other is None:
        return None
    if d is None:
        own = rate_with(m.plain, m.num_workers) or supply(m)
        return None if not own else Estimate(value=other / own - 1)
    compute_s, load_s = d.compute_s.value, size / other
    step_s = compute_s + load_s if number == 0 else max(compute_s, load_s)
    return Estimate(value=d.total_s.value / step_s - 1)


def oversubscription(m: Measurement) -> CauseFound | None:
    """More threads want to compute than there are cores, and lose time by it."""
    cores, threads = m.preflight.machine.usable_cores, m.busy_threads or 1.0
    wanted = m.num_workers * max(1.0, threads)
    alone = rounds_of(m, "L")
    if not m.num_workers or wanted <= 1.2 * cores or not alone:
        return None
    is_saturated = max(busy_share(one, cores) for one in alone) >= SATURATED
    fewer = fewer_are_faster(m.plain, m.num_workers)
    is_threaded = threads >= THREADS
    if not is_saturated or not (is_threaded or (fewer is not None and fewer[0] > 0)):
        return None
    each = f" with {threads:.1f} computing threads each" if is_threaded else ""
    slower = f"; num_workers={fewer[0]} is x{fewer[1]:.2f} as fast" if fewer is not None else ""
    remedy = []
    if is_threaded:
        remedy.append("one thread in each worker: torch.set_num_threads(1), cv2.setNumThreads(0) in worker_init_fn")
    if m.num_workers > cores:
        remedy.append(f"num_workers={max(1, cores - 1)}: a worker per core, one core left to the step")
    elif fewer is not None:
        remedy.append(f"num_workers={fewer[0]}")
    return CauseFound(
        cause="oversubscription",
        text=f"{_workers(m.num_workers)}{each} share {cores} cores, which are all busy{slower}.",
        gain=None if fewer is None else loop_gain(m, Estimate(value=fewer[1] - 1)),
        basis="observed" if fewer is None else "experiment",
        evidence=evidence(m, "L", f"plain workers={m.num_workers}"),
        remedy=tuple(remedy),
    )


def lock(m: Measurement) -> CauseFound | None:
    """Workers are threads of one process and bring nothing, while that process computes on one core."""
    alone = rounds_of(m, "L")
    rate_0, rate_n = rate_with(m.plain, 0), rate_with(m.plain, m.num_workers)
    if m.num_workers < 2 or not alone or rate_0 is None or rate_n is None:
        return None
    are_threads = all(one.workers_cpu_s < 0.1 * one.consumer_cpu_s for one in alone)
    on_one_core = all(0.7 <= busy_share(one, 1) <= 1.4 for one in alone)
    if not (are_threads and on_one_core and rate_n < TAKES_TURNS * rate_0):
        return None
    return CauseFound(
        cause="lock",
        text=f"{m.num_workers} threads deliver x{rate_n / rate_0:.2f} of what one does, and compute on one core together: they "
        "take turns at Python's interpreter lock.",
        gain=None,
        basis="experiment",
        evidence=evidence(m, "L", "plain workers=0", f"plain workers={m.num_workers}"),
        remedy=('runner="processes"', "let the transform work on whole arrays, which leaves the lock to others"),
    )


def memory(m: Measurement) -> CauseFound | None:
    """Batches prepared ahead take more than half of the memory, or of the shared memory, that is free."""
    use, machine = m.memory, m.preflight.machine
    if use is None or not use.ahead_bytes or not m.num_workers:
        return None
    places = [("memory", machine.free_memory_bytes), ("/dev/shm", machine.shm_free_bytes)]  # noqa: S108 - its name
    tight = [(name, free) for name, free in places if free is not None and use.ahead_bytes > TOO_MUCH * free]
    if not tight:
        return None
    name, free = tight[-1]
    return CauseFound(
        cause="memory",
        text=f"Batches prepared ahead may take {bytes_text(use.ahead_bytes)} ({bytes_text(use.batch_bytes)} each); "
        f"{bytes_text(free)} of {name} are free.",
        gain=None,
        basis="accounted",
        evidence=evidence(m, "memory"),
        remedy=(
            "prefetch_factor lower: `headrace tune` finds the smallest that the loop does not wait for",
            "smaller batches",
        ),
    )


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"
