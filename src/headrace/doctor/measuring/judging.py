"""Is the loop limited by its data? Two witnesses are asked: step times with and without the loader, and the waits themselves.

The waits are seen directly, in every step, and hardly know noise. Step times know everything that a loader does to a loop,
but also the noise of the machine, and that one kept batch may not be like the others. So nobody is called limited unless
something that data cost was seen itself, and nobody is called healthy while an interval reaches what matters.

What a loader can cost at most is what is waited for plus what it does beside the step. Without workers nothing works beside;
with workers, a step cannot lose more to them than the time for which they work. If the sum does not matter, no noise of the
step times can make it matter. The first line that fits decides:

    waits            beside the step             step times               verdict
    matter, surely   -                           agree, or quiet machine  limited
    over 50 %        -                           every pair: twice        limited, on any machine and however few the pairs
    -                proven cost                 -                        limited
    3 % and more     -                           longer beyond noise      limited
    any              little: the sum < 5 %       any, or none             healthy
    below 5 %        -                           headroom surely < 5 %    healthy
    surely < 2 %     -                           perhaps the same, < 12 % healthy
    surely < 2 %     N ran: no interference      longer                   healthy (fresh batches are not the kept one)
    surely < 2 %     N did not run               longer                   inconclusive: rounds of N would tell
    other            -                           -                        inconclusive

Where no step times can be compared (too few rounds), only waits decide: those that matter surely, and on a busy machine are
most of the time; or the sum.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from headrace.doctor.measuring.arms import least_ratio
from headrace.doctor.measuring.causes.gains import rounds_of
from headrace.doctor.measuring.decomposition import noise_of
from headrace.doctor.measuring.model import CauseFound, Measurement

__all__ = ["MATTERS", "WAITS", "judge", "misses_interference", "most_lost"]

MATTERS = 0.05
"""A share of the loop's time that people act on."""
WAITS = 0.03
"""Share of waiting from which its cause is asked for."""
FEELS = 0.02
"""Below 2 % nothing is changed for it."""
STARVED = {"quiet": MATTERS, "unknown": MATTERS, "noisy": 0.1, "loud": 0.2}
"""Share of waiting from which a loop is called limited, by how busy the machine was beforehand: whoever shares its cores with
others waits for data now and then, and that is not the loader's fault."""
MOST = 0.5
"""Share of waiting that no busy machine explains by itself."""
HUGE = 2.0
"""Times that the step alone is faster in every single pair of rounds, from which few pairs are enough."""
STILL_NEAR = 0.12
"""How far the interval of the step times may reach where the loop is seen to wait for nothing."""


def judge(m: Measurement, beside: Sequence[CauseFound]) -> Literal["healthy", "limited", "inconclusive"]:
    """Decides.

    Args:
        m: A measurement with a training step.
        beside: Costs that are not waiting and were proven: interference, transfer, epoch starts.
    """
    d, waiting = m.decomposition, m.waiting
    if waiting is None:
        return "inconclusive"
    waits, matters = waiting.share, STARVED[m.preflight.noise]
    starves = waits.interval.low > matters / (1 + MATTERS)
    is_quiet = m.preflight.noise in {"quiet", "unknown"}
    most = most_lost(m)
    costs_little = most is not None and most < MATTERS
    if d is None:  # too few rounds to compare step times: only what is seen directly can decide
        is_plain = waits.interval.low > (MATTERS if is_quiet else MOST)
        if beside or (starves and is_plain and not _has_device(m)):
            return "limited"
        return "healthy" if costs_little else "inconclusive"
    headroom = d.headroom
    noise = noise_of(m.runs, "I")
    bound = math.inf if noise is None else noise[1]
    is_slower = headroom.interval.low > FEELS and headroom.value >= matters and headroom.value > min(bound, 1.0)
    if d.transfer_s is not None or not is_quiet:
        # With a device, waits of the host may be hidden behind its queue; on a busy machine, who waits for data may be waiting
        # for a core, and would wait for it in the step as well. Then the step times have to show the waits, too.
        starves = starves and headroom.value >= waits.value / (1 - min(waits.value, 0.99)) / 2
        is_huge = waits.value > MOST and (least_ratio(m.runs, "C", "I") or 0.0) > HUGE
        starves = starves and (is_quiet or headroom.interval.low > FEELS or waits.interval.low > MOST or is_huge)
    if starves or beside or (is_slower and waits.value >= WAITS):
        return "limited"
    if costs_little:
        return "healthy"
    waits_for_nothing = waits.interval.high < FEELS
    limit = max(MATTERS, FEELS + min(bound, MATTERS))
    if headroom.interval.high < limit and waits.value < MATTERS:
        return "healthy"
    if waits_for_nothing and headroom.interval.low <= FEELS and headroom.interval.high < STILL_NEAR:
        return "healthy"
    if waits_for_nothing and headroom.interval.low > FEELS and _has_no_interference(m):
        return "healthy"  # the steps are longer with fresh batches than with a kept one, and no loader changes that
    return "inconclusive"


def most_lost(m: Measurement) -> float | None:
    """The most that the loader can cost, as a share of the loop's time: waits, and work beside the step; None: not known."""
    beside = _works_beside(m)
    if m.waiting is None or beside is None or _has_device(m):
        return None  # how far a device's queue hides what the host does is not known
    return m.waiting.share.interval.high + beside


def misses_interference(m: Measurement) -> bool:
    """True if steps of the loop are longer than those on a kept batch, nothing is waited for, and no rounds of N say why."""
    d, waiting = m.decomposition, m.waiting
    if d is None or waiting is None or not m.num_workers or d.interference_s is not None:
        return False
    return waiting.share.interval.high < FEELS and d.headroom.interval.high >= MATTERS


def _works_beside(m: Measurement) -> float | None:
    """Part of the loop's time for which the loader can work beside the step, at most; None: not known.

    By what a batch takes alone, on every worker. It also holds for a loader that keeps a thread of its own without calling
    it a worker. Where workers are processes, by the processor time of all of them in the loop, if that is less.
    """
    loop = [timed for arm in ("I", "I accounted") for timed in rounds_of(m, arm)]
    alone = [
        timed
        for arm in ("L", "L accounted", "L pilot", f"plain workers={m.num_workers}")
        for timed in rounds_of(m, arm)
    ]
    if not loop or not alone:
        return None
    per_batch = [one.window.seconds / max(1, one.window.num_batches) for one in alone if one.window is not None]
    step_s = statistics.fmean(
        one.window.seconds / max(1, one.window.num_batches) for one in loop if one.window is not None
    )
    bound = max(1, m.num_workers) * statistics.median(per_batch) / max(step_s, 1e-12)
    if m.num_workers and all(one.workers_cpu_s > 0.1 * one.consumer_cpu_s for one in alone):
        shares = [one.workers_cpu_s / max(one.steps.end_s - one.steps.asked_s[0], 1e-12) for one in loop]
        bound = min(bound, statistics.fmean(shares))
    return bound


def _has_device(m: Measurement) -> bool:
    return any(run.timed is not None and run.timed.device is not None for run in m.runs)


def _has_no_interference(m: Measurement) -> bool:
    d = m.decomposition
    if d is None or d.interference_s is None:
        return False
    return d.interference_s.interval.high < MATTERS * d.compute_s.value
