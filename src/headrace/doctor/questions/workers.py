"""Questions that several rules ask about workers. Pure; rules never import each other, so the questions live here."""

from __future__ import annotations

from headrace.doctor.evidence.randomness import WorkerDraws
from headrace.doctor.evidence.workers import WorkerEnds, WorkerShares
from headrace.doctor.rule import Severity

__all__ = ["asleep", "in_vain", "setting"]


def asleep(num_own_workers: int, severity: Severity) -> Severity:
    """Returns the severity of a fault that only workers bring out: a loader that uses none is well today."""
    return severity if num_own_workers else "info"


def setting(seen: WorkerEnds | WorkerShares | WorkerDraws) -> str:
    """Returns `2 workers`, or `2 workers (the loader uses none)`."""
    added = "" if seen.num_own_workers else " (the loader uses none yet)"
    return f"{seen.num_workers} worker{'' if seen.num_workers == 1 else 's'}{added}"


def in_vain(*, same_over_workers: bool | None, same_over_epochs: bool | None) -> str:
    """Returns how draws repeat, in words: `workers draw the same numbers, and so does every epoch`."""
    if same_over_workers and same_over_epochs:
        return "all workers draw the same random numbers, and draw them again in every epoch"
    if same_over_workers:
        return "all workers draw the same random numbers"
    return "each worker draws the same random numbers again in every epoch"
