"""Questions about waiting that several rules ask: does this loop wait, in which way, and who does it wait for?

One cause is reported once. What a few samples, one worker or a short queue explain is not called a loader that is too
slow; only waiting that is spread over the run is, and then the stage that takes most of the time is its cause.
"""

from __future__ import annotations

import math
from typing import Literal

from headrace.doctor.evidence.stages import MOST_OF_WAITING, StageTimes, StageTrace

__all__ = [
    "FEWEST_S",
    "FEWEST_STEPS",
    "is_long_enough",
    "judged",
    "longest_waits",
    "per_batch_s",
    "percent",
    "slow_worker",
    "span",
    "stage_of",
    "wait_share",
    "waiting_kind",
    "workers_needed",
]

FEWEST_STEPS, FEWEST_S = 20, 2.0
"""Below either, start-up and chance decide the shares."""
STARVED = 0.10
"""Share of the loop's time; below a tenth, changing the loader is hardly felt."""
NOTED = 0.05
"""Share from which an explained kind of waiting (rare slow samples, one worker, bursts) is worth a word."""
WORKS = 0.1
"""Share of its time in which a loop that trains nothing must work, or it is there for the reading itself."""
FLOOR_S = 1e-3
"""Waiting per step: less than a millisecond is what any hand-over costs."""
STEADY = 0.5
"""Of the parts of the run, the quarter with least waiting must still wait this part of the limit: else something
disturbed the machine for a while."""
TAIL = 0.6
"""Share of all waiting in the worst 2 % of the steps, from which a few samples are the cause."""
FEWEST_FOR_TAIL = 100
SELDOM = 0.1
"""Share of the steps that hold four fifths of the waiting, up to which these few are the cause. With W workers that are
too slow one step in W waits, so it must be less than half of that too."""
IDLE = 0.3
"""Share of the workers' time without work, from which their number is not what limits."""
OFTEN = 0.5
"""Share of the steps that wait: a way that is too long is felt in most of them, a queue that runs empty in few."""
FEWEST_MEASURED = 10
MAIN = 0.5
"""Share of a batch's time from which one stage is called the cause."""
SLOW = 2.0
"""Times the others' median: one worker is slow. Between workers of one loader, batches differ by far less."""

Kind = Literal["starved", "tail", "one-worker", "bursts"]
Stage = Literal["read", "transform", "collate", "hand-over"]


def is_long_enough(trace: StageTrace) -> bool:
    """True if there were enough steps to judge speed by."""
    return trace.num_batches >= FEWEST_STEPS and trace.loop_s >= FEWEST_S


def judged(times: StageTimes) -> list[StageTrace]:
    """Returns the loops whose speed matters and can be judged.

    Those that train; in a script without optimizer steps, those that do something with their batches and do not only
    read them, as a count of the data set does.
    """
    if times.num_steps:
        return [trace for trace in times.loaders if trace.role == "train" and is_long_enough(trace)]
    return [
        trace
        for trace in times.loaders
        if trace.role == "unknown" and is_long_enough(trace) and wait_share(trace) <= 1 - WORKS
    ]


def wait_share(trace: StageTrace) -> float:
    """Returns which part of the loop's time it waited."""
    return trace.wait_s / max(trace.loop_s, 1e-9)


def waiting_kind(trace: StageTrace) -> Kind | None:
    """Returns in which way a loop waits; None if it does not, or if that is not sure."""
    share = wait_share(trace)
    if share < NOTED or trace.wait_s / trace.num_batches < FLOOR_S:
        return None
    # Batches that are ready and whose loop is not woken in time tell of a busy machine, not of the loader.
    unready_s = trace.wait_s - (trace.handover_s or 0.0)
    is_noted = unready_s >= max(NOTED * trace.loop_s, 0.5 * trace.wait_s)
    if is_noted and slow_worker(trace) is not None:
        return "one-worker"
    if is_noted and trace.num_batches >= FEWEST_FOR_TAIL and _is_tail(trace):
        return "tail"
    is_starved = share >= STARVED and _is_steady(trace)
    if _is_handover(trace):
        return "starved" if is_starved and trace.num_waited > OFTEN * trace.num_batches else None
    idle = _idle_share(trace)
    if idle is not None and idle >= IDLE:
        return "bursts" if is_noted and trace.num_waited <= OFTEN * trace.num_batches else None
    return "starved" if is_starved else None


def longest_waits(trace: StageTrace) -> tuple[int, float]:
    """Returns (number of the few steps that hold most of the waiting, which part of it they hold)."""
    if trace.worst_wait_s >= TAIL * trace.wait_s:
        return trace.num_worst, trace.worst_wait_s / max(trace.wait_s, 1e-9)
    return trace.num_holding, MOST_OF_WAITING


def stage_of(trace: StageTrace) -> tuple[Stage, float] | None:
    """Returns (the stage that takes most of a batch's time, which part of it); None if none does or nothing was seen."""
    if _is_handover(trace):
        return "hand-over", min(1.0, (trace.handover_s or 0.0) / trace.wait_s)
    total_s = trace.fetch_s + trace.collate_s
    if trace.num_measured < FEWEST_MEASURED or total_s <= 0:
        return None
    computed_s = min(trace.fetch_s, trace.fetch_cpu_s + (trace.fetch_queued_s or 0.0))
    parts: dict[Stage, float] = {
        "read": (trace.fetch_s - computed_s) / total_s,
        "transform": computed_s / total_s,
        "collate": trace.collate_s / total_s,
    }
    stage = max(parts, key=lambda name: parts[name])
    return (stage, parts[stage]) if parts[stage] >= MAIN else None


def slow_worker(trace: StageTrace) -> tuple[int, float] | None:
    """Returns (number of the one worker that takes much longer than the others, how many times); None: there is none."""
    if trace.num_workers < 2 or any(worker.num_batches < FEWEST_MEASURED for worker in trace.workers):
        return None
    times = sorted((worker.typical_s, number) for number, worker in enumerate(trace.workers))
    if len(times) < 2:
        return None
    slowest, number = times[-1]
    others = [time for time, _ in times[:-1]]
    usual = others[len(others) // 2]
    if usual <= 0 or slowest < SLOW * usual or slowest - usual < FLOOR_S:
        return None
    return number, slowest / usual


def per_batch_s(trace: StageTrace) -> float | None:
    """Returns the seconds in which one worker prepares a batch, on average."""
    return (trace.fetch_s + trace.collate_s) / trace.num_measured if trace.num_measured else None


def workers_needed(trace: StageTrace) -> int | None:
    """Returns how many workers would keep up with the loop's own steps, if each got a core; None: not known."""
    batch_s = per_batch_s(trace)
    own_s = (trace.loop_s - trace.wait_s) / trace.num_batches
    return None if batch_s is None or own_s <= 0 else math.ceil(batch_s / own_s)


def span(seconds: float) -> str:
    """Returns a time as people write it.

    >>> [span(seconds) for seconds in (75.04, 2.345, 0.0512, 0.00042)]
    ['75 s', '2.3 s', '51 ms', '0.42 ms']
    """
    if seconds >= 10:
        return f"{seconds:,.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    milliseconds = 1e3 * seconds
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


def percent(share: float) -> str:
    """Returns a share as people write it.

    >>> [percent(share) for share in (0.384, 0.004, 1.0)]
    ['38 %', '0.4 %', '100 %']
    """
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else f"{100 * share:.1f} %"


def _is_handover(trace: StageTrace) -> bool:
    """True if the loop waits for what is on its way.

    Workers that are busy all the time are the limit themselves: if it were the way from them, they would stand idle in
    front of it. And the loop's process computes for it, taking apart what was sent, and as much of its time as a loop must
    wait to be called starved: what it does not compute, on a busy machine, is that it is not woken in time.
    """
    if not trace.num_workers or trace.handover_s is None or not trace.handover_s >= MAIN * trace.wait_s > 0:
        return False
    if trace.handover_cpu_s is not None and trace.handover_cpu_s < STARVED * trace.loop_s:
        return False
    idle = _idle_share(trace)
    return idle is not None and idle >= IDLE


def _is_tail(trace: StageTrace) -> bool:
    """True if few steps hold the waiting."""
    few = trace.num_batches * min(SELDOM, 0.5 / max(trace.num_workers, 1))
    return trace.worst_wait_s >= TAIL * trace.wait_s or trace.num_holding <= few


def _is_steady(trace: StageTrace) -> bool:
    """True if the loop waits in most parts of the run, and not in a few that something else disturbed."""
    shares = sorted(trace.wait_shares)
    return len(shares) < 4 or shares[len(shares) // 4] >= STEADY * STARVED


def _idle_share(trace: StageTrace) -> float | None:
    """Share of the workers' time in which they had nothing to do; None: not seen.

    Only some batches are measured, and a slow one may not be among them: while the loop waits for a batch that is not
    ready, at least one worker works.
    """
    idle_s = sum(worker.idle_s for worker in trace.workers)
    busy_s = sum(worker.fetch_s + worker.collate_s for worker in trace.workers)
    if busy_s <= 0:
        return None
    unready_s = trace.wait_s - (trace.handover_s or 0.0)
    return min(idle_s / (idle_s + busy_s), 1 - unready_s / (trace.loop_s * trace.num_workers))
