"""What happens in worker processes: samples against those of one process, shares, errors, ends."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = [
    "FieldDifference",
    "StaleAttribute",
    "StaleCopies",
    "WorkerComparison",
    "WorkerEnd",
    "WorkerEnds",
    "WorkerError",
    "WorkerShares",
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerError:
    """An exception that left the user's code in a worker."""

    error_type: str
    message: str
    """Its first line."""
    stage: str
    """worker_init_fn, sample, collate."""
    sample_ids: tuple[SampleId, ...]
    """What was in hand; empty for `worker_init_fn` and for streams."""
    at: str | None
    """`file:line in function` of the user's code."""
    arrives_as: str | None
    """Type under which torch raises it in the training process; None: it cannot be sent, and the loader waits for ever."""
    in_one_process: Literal["fine", "same", "by chance", "unknown"]
    """fine: one process prepares these samples without an error; same: it meets an error, too; by chance: it fails in some
    readings, or too seldom in workers to say that it is the workers."""
    num_errors: int = 1
    """Errors of this type at this place."""
    num_came_out: int = 0
    """Readings in workers in which the samples that met it came out."""
    num_single: int = 0
    """Readings in one process in search of such an error; 0: it was not searched for."""
    num_single_failed: int = 0
    """Of those, readings that failed with it."""
    is_drawn: bool = False
    """For what fails by chance: True if one process failed again under the same seed, so that a random step draws it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnd:
    """A worker that ended, or that did not go on."""

    kind: Literal["died", "stuck"]
    cause: str
    """For `died` the signal or exit status."""
    stage: str
    """start, worker_init_fn, sample, collate, hand-over (of an exception), waiting (nothing in hand)."""
    sample_ids: tuple[SampleId, ...]
    """What it had in hand."""
    at: str | None
    """`file:line in function` where the user's code stood."""
    stack: str | None
    waited_s: float
    """Seconds without progress."""
    fewest_ids: tuple[SampleId, ...] | None
    """The fewest samples that were seen to do it again, in fresh workers; None: it was not seen again."""
    num_attempts: int
    """Tries that shrinking took."""
    is_any_sample: bool
    """True if another sample alone does it too: then it is not the sample."""
    in_one_process: Literal["fine", "same", "unknown"]
    """fine: one process prepares and joins the same samples."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnds(Evidence):
    """How the workers of one loader fared."""

    num_workers: int
    """Workers that were started for the walk."""
    num_own_workers: int
    """What the loader is set to; 0: it uses none, and these were added for the walk."""
    start_method: str | None
    num_samples: int
    """Samples that came out of them."""
    ends: tuple[WorkerEnd, ...] = ()
    errors: tuple[WorkerError, ...] = ()
    """One for each type and place, the first one that was met."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """One field that workers deliver otherwise than one process does."""

    field: str
    num_different: int
    num_compared: int
    sample_ids: tuple[SampleId, ...]
    """The first of those that differ, in the order of the walk."""
    lone_worker: Literal["equal", "different", "varies", "unknown"]
    """What one worker alone delivers: equal to one process (then the workers disturb each other), different in the same
    way each time, or varying from walk to walk (then it is drawn anew in each worker)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerComparison(Evidence):
    """The same samples from workers and from one process, each read twice in one process to know what is fixed."""

    num_workers: int
    num_own_workers: int
    start_method: str | None
    num_compared: int
    """Samples."""
    fixed_fields: tuple[str, ...]
    """Fields that are equal in both reads of one process, under different seeds."""
    differences: tuple[FieldDifference, ...] = ()
    errors: tuple[WorkerError, ...] = ()
    """Errors that only workers have."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShares(Evidence):
    """How the samples are shared out among the workers, and what is lost on the way."""

    num_workers: int
    num_own_workers: int
    is_iterable: bool
    per_worker: tuple[int, ...]
    """Samples of each worker: yielded by its stream, or dealt out to it by the (batch) sampler."""
    is_complete: bool
    """True if all streams ended within the limit; always for a sampler that ended."""
    num_batches: int | None
    """Batches that the sampler made; None for streams."""
    batch_size: int | None
    drop_last: bool
    num_single: int | None
    """Samples that one process yields; None: not known, or not the same in two walks."""
    num_missing: int | None
    """Of those, samples that no worker yields; None: contents cannot be compared."""
    num_dropped: int = 0
    """Samples in incomplete last batches, over all workers."""
    num_dropped_single: int = 0
    """The same in one process."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StaleAttribute:
    """Something of the data set that is changed in the training process, and what persistent workers make of it."""

    change: str
    """What was done, as code: `dataset.set_epoch(5)`, `dataset.level = 2`."""
    attributes: tuple[str, ...]
    """Attributes of the data set that it writes and that samples are made with."""
    at: str | None
    """`file:line` of the method, or of the line that writes."""
    has_effect: bool
    """True if samples differ after it in one process, drawn under equal seeds."""
    reaches_workers: bool | None
    """True if persistent workers deliver the changed samples too; None: not tried."""
    is_between_epochs: bool
    """True if the user's file does it in a loop, or if its name says so: set_epoch, on_epoch_end, resample, ..."""
    sample_id: SampleId | None = None
    """First sample that shows it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StaleCopies(Evidence):
    """Changes of the data set between epochs, tried with persistent workers."""

    num_workers: int
    tried: tuple[StaleAttribute, ...]
    """Empty also if the loader keeps no workers."""
