"""What `watch` measured of the time of each loader: how long the loop waited, and what the workers did meanwhile."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence

__all__ = ["MOST_OF_WAITING", "StageTimes", "StageTrace", "WorkerTrace"]

MOST_OF_WAITING = 0.8
"""Share of all waiting that counts as most of it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTrace:
    """What one worker of a loader did, over all passes."""

    num_batches: int
    fetch_s: float
    """Seconds in the data set."""
    fetch_cpu_s: float
    """Of these, seconds in which the worker's thread computed."""
    collate_s: float
    """Seconds in which samples were joined."""
    typical_s: float
    """Seconds that a batch usually takes it: the geometric mean, which a few slow samples hardly move."""
    idle_s: float
    """Seconds between handing one batch over and being asked for the next one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageTrace:
    """The time of one loader, the first batch of each pass not counted."""

    loader: int
    """Number of the loader, as in `LoaderTraces`."""
    where: str | None
    """`file:line` of the user's code that made it."""
    role: Literal["train", "evaluation", "unused", "unknown"]
    num_workers: int
    prefetch_factor: int | None
    num_batches: int
    """Batches that the loop asked for; the first ones of passes are not among them."""
    loop_s: float
    """Seconds from asking for the first of them to asking for the next one after the last: waiting and computing."""
    wait_s: float
    """Of these, seconds in which the loop waited."""
    median_wait_s: float
    median_step_s: float
    """Median of the loop's own time between two batches: what the wait is compared with."""
    wait_shares: tuple[float, ...]
    """Share of waiting in parts of the run of about equal length, in the order of time: a fault of the loader is in most
    of them, a disturbance from elsewhere in few."""
    worst_wait_s: float
    """Seconds of waiting in the worst 2 % of the steps."""
    num_worst: int
    """How many steps that are."""
    num_holding: int
    """Steps, longest waits first, that hold four fifths of the waiting."""
    num_waited: int
    """Steps that waited longer than a twentieth of the median step, and longer than 1 ms."""
    handover_s: float | None
    """Of the waiting, seconds in which the batch was ready in its worker and on its way; None: not seen."""
    handover_cpu_s: float | None
    """Of these, seconds in which the loop's process computed, all its threads: it takes apart what was sent. The rest is
    the worker's part, or a process that has to wait for a core; None: not seen."""
    num_measured: int
    """Batches whose stages were measured; 0: the workers could not be seen."""
    num_samples: int
    """Samples in them."""
    fetch_s: float
    """Seconds in the data set, over all workers."""
    fetch_cpu_s: float
    """Of these, seconds in which the worker's thread computed."""
    fetch_queued_s: float | None
    """Of these, seconds in which it could have computed but had no core; None: the system does not say."""
    collate_s: float
    """Seconds in which samples were joined, over all workers."""
    batch_bytes: float | None
    """Bytes of tensors and arrays in a batch, on average; None: not measured."""
    workers: tuple[WorkerTrace, ...]
    """Empty without workers."""
    step_alone_s: float | None = None
    """Not gathered yet: seconds of one step on a batch that is already there, with nobody loading."""
    step_beside_loader_s: float | None = None
    """Not gathered yet: the same while the loader works beside it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes(Evidence):
    """The time of every loader that the script walked through."""

    loaders: tuple[StageTrace, ...]
    num_steps: int
    """Optimizer steps of the script."""
    usable_cores: int
