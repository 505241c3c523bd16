"""Who works for a loader, and how many batches may be ready or in work at any time."""

from __future__ import annotations

import dataclasses
from typing import Any

from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import attribute, is_headrace, is_torch
from headrace.doctor.subject.rebuild import DEFAULT_PREFETCH

__all__ = ["Crew", "crew_of"]

OWN_THREADS = ("tensorflow", "grain", "nvidia")
"""Libraries whose pipelines work in threads of their own, whatever a number of workers says."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """As a loader runs."""

    num_workers: int
    in_flight: int
    """Batches that may be ready or in work; 0: none is before it is asked for."""
    is_kept: bool = False
    """Workers persist from epoch to epoch."""
    runs_on: bool = False
    """They begin the next epoch while this one ends, so that nothing has to fill again."""
    first_steps: int = 1
    """Steps at the very beginning that do other things than later ones: they import, open files, choose algorithms."""
    alone: str = ""
    """Why nothing works beside the loop; empty: something does."""


def crew_of(subject: Subject, loader: Any) -> Crew:
    """Says who works for a realised loader. Asks its attributes; starts nothing."""
    if is_headrace(loader):
        return _of_headrace(loader)
    is_own = is_torch(loader) or subject.loader is None
    num_workers = attribute(loader, "num_workers") if is_torch(loader) else subject.num_workers
    count = num_workers if is_own and isinstance(num_workers, int) else 0
    if count:
        prefetch = attribute(loader, "prefetch_factor")
        per_worker = prefetch if isinstance(prefetch, int) else DEFAULT_PREFETCH
        kept = attribute(loader, "persistent_workers") is True
        return Crew(num_workers=count, in_flight=count * per_worker, is_kept=kept)
    if type(subject.dataset).__module__.partition(".")[0] in OWN_THREADS:
        return Crew(num_workers=0, in_flight=DEFAULT_PREFETCH)
    return Crew(num_workers=0, in_flight=0, alone="without workers the loader works in the loop itself, beside nothing")


def _of_headrace(loader: Any) -> Crew:
    runner = attribute(loader, "_runner")
    name = attribute(runner, "name")
    if attribute(loader, "num_workers") == "auto":
        why = "num_workers='auto' chooses while it runs: what works beside the loop is not known beforehand"
        return Crew(num_workers=0, in_flight=0, alone=why)
    num_workers = int(attribute(runner, "num_workers") or 0)
    if name == "inline" or not num_workers:
        return Crew(
            num_workers=0, in_flight=0, alone="without workers the loader works in the loop itself, beside nothing"
        )
    kept = bool(loader.persistent_workers)
    prefetch = DEFAULT_PREFETCH if loader.prefetch_factor is None else loader.prefetch_factor
    runs_on = attribute(attribute(loader, "_loading"), "_runs_ahead") is True
    return Crew(num_workers=num_workers, in_flight=num_workers * prefetch, is_kept=kept, runs_on=runs_on)
