"""What the engine says about itself: counters and times as plain values.

The only seam between engine and doctor: the engine fills these records, the doctor reads them. Stages hold no timing
code; whoever runs them times them from outside.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

__all__ = ["Clock", "Decision", "LoaderStats", "StageTime"]

Clock = Callable[[], float]
"""Seconds on a monotonic clock; tests pass a fake one."""

monotonic: Clock = time.perf_counter


@dataclasses.dataclass(slots=True)  # not frozen: made per batch, where that costs 1 us
class StageTime:
    """Time that one stage took, summed over samples."""

    stage: str
    """Name of the stage: read, the names of the plan's stages, collate."""
    wall_s: float
    """Seconds of wall time inside the stage, summed over all workers: with 4 workers, up to 4 s per second."""
    num_samples: int
    """Samples that passed the stage."""


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """One change of who executes under `num_workers="auto"`, or the choice to leave it at that, with its reason."""

    time_s: float
    """Seconds from the first batch asked for."""
    before: str
    """Setting so far: `inline`, or runner x workers and batches prefetched by each."""
    after: str
    """Setting from now on."""
    reason: str
    """Why, in words."""
    wait_share: float | None = None
    """Share of the loop's time in the round before in which it waited for batches. None: not measured."""
    batches_per_s: float | None = None
    """Batches per second in that round."""
    service_s: float | None = None
    """Seconds that one batch took one worker in that round."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoaderStats:
    """What a loader did since its current pass began."""

    epoch: int
    """Epoch of the pass, from 0; -1 = no pass has begun."""
    num_batches: int
    """Batches handed over."""
    num_samples: int
    """Samples handed over by this rank, flagged repeats included."""
    first_batch_s: float | None
    """Seconds from `iter(loader)` to the first batch: start-up of workers and the first load. None: no batch yet."""
    wait_s: float
    """Seconds that the consumer waited for batches after the first. High against the loop's time: starved."""
    stages: tuple[StageTime, ...]
    """Time by stage, in the order of the flow."""
    runner: str
    """Name of the runner that executes: inline, threads, processes."""
    num_workers: int
    """Workers of that runner; 0 = in the caller."""
    decisions: tuple[Decision, ...] = ()
    """With `num_workers="auto"`: what was tried and chosen since the loader was made, and why."""
