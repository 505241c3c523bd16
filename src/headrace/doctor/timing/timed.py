"""What one timed run was: every batch of it, and the part that counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

from headrace.doctor.timing.setting import Setting

__all__ = ["Amounts", "BatchMade", "EpochStart", "Kind", "Stage", "StageUse", "Steps", "Timed", "Window"]

Kind = Literal["L", "L0", "C", "Ct", "N", "I"]
Stage = Literal["read", "decode", "transform", "sample", "collate", "handover", "transfer"]
"""`sample`: everything that happens in the data set, where it cannot be told apart. `handover`: from the worker to the
loop."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How much of what was delivered. None: there is none of it, or it is not known."""

    num_samples: int
    num_bytes: int
    """Of all tensors and arrays."""
    num_pixels: int | None = None
    """Height x width of image-like fields, over samples."""
    num_tokens: int | None = None
    """Elements of integer fields whose length varies or that a mask covers, padding left out."""
    padding_share: float | None = None
    """Part of the token places that is padding, 0 to 1."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EpochStart:
    """From asking for an iterator to the first batch of one epoch."""

    epoch: int
    make_s: float
    """`iter(loader)`: workers are started here, unless they persist."""
    first_batch_s: float
    """From there to the first batch."""
    ending_s: float = 0.0
    """Before that, to end the epoch before: workers that do not persist are ended here. 0 for the first epoch."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Every batch that was taken, in order; all tuples have one length. Seconds on `time.monotonic()`."""

    asked_s: tuple[float, ...]
    """When it was asked for: a_i."""
    got_s: tuple[float, ...]
    """When it was there: b_i. The wait is b_i - a_i; the consumer has it until a_(i+1), or `end_s` for the last."""
    end_s: float
    epochs: tuple[int, ...]
    """Of each batch, from 0. The wait of an epoch's first batch is its start."""
    num_samples: tuple[int, ...]

    @property
    def waits_s(self) -> tuple[float, ...]:
        """b_i - a_i."""
        return tuple(got - asked for asked, got in zip(self.asked_s, self.got_s, strict=True))

    @property
    def consumer_s(self) -> tuple[float, ...]:
        """a_(i+1) - b_i; an epoch's end belongs to the loader, so its last batch ends with the request that ended it."""
        return tuple(after - got for got, after in zip(self.got_s, (*self.asked_s[1:], self.end_s), strict=True))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The steady part: batches `first` to `last` - 1 of `Steps`, epoch starts inside it taken out."""

    first: int
    last: int
    seconds: float
    num_samples: int
    stretches: tuple[tuple[int, int], ...] = ()
    """The parts of it that count: (first, one behind the last) of each epoch's steady batches. Empty: all from `first` to
    `last`."""
    has_starts: bool = False
    """True: epochs were too short for a steady part, so these are whole ones with their starts. No steady rate."""

    @property
    def rate_per_s(self) -> float:
        """Samples per second."""
        return self.num_samples / self.seconds

    @property
    def num_batches(self) -> int:
        """Batches in it."""
        return sum(last - first for first, last in self.stretches or ((self.first, self.last),))

    @property
    def places(self) -> Iterator[int]:
        """Their places in `Steps`."""
        for first, last in self.stretches or ((self.first, self.last),):
            yield from range(first, last)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageUse:
    """What one stage took for the samples that were accounted. Only of runs that account."""

    stage: Stage
    wall_s: float
    """Over all samples and workers, without the stages inside it."""
    cpu_s: float
    """Of those, computed."""
    num_samples: int
    num_servers: int
    """How many samples it can work on at a time."""
    num_bytes: int | None = None
    """Read, of `read`, or of the stage in which reading could not be told apart (`sample`, `decode`); files that are mapped
    into memory do not count. None: not counted, or another stage."""
    num_requests: int | None = None
    """Calls that read, of the same stage; None: not counted."""
    awake_s: float | None = None
    """`cpu_s`, and the time for which it wanted to compute and had to wait for a core; None: not told (Linux tells)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchMade:
    """The way of one batch, seen in the worker that made it. `time.monotonic()`, which all processes share."""

    batch: int
    """Its place in the order of delivery, over all epochs."""
    worker: int
    began_s: float
    fetched_s: float
    """Its samples are there; collation begins."""
    made_s: float
    """It is joined, and put into the queue."""
    slowest_sample_s: float | None = None
    """Of its samples; None: not told apart."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One timed run: the record of `TimedRun`."""

    kind: Kind
    setting: Setting
    without: tuple[Stage, ...] = ()
    """Stages that were knocked out: what they made before is handed on again."""
    num_workers: int
    """As it ran."""
    in_flight: int
    """Batches that may be ready or in work at any time: workers x prefetch_factor; 0 without workers."""
    began_s: float
    starts: tuple[EpochStart, ...]
    """Of every epoch that was begun; none for C and Ct."""
    steps: Steps
    window: Window | None
    """None: too few batches for a steady part; see `why`."""
    why: str = ""
    """Why there is no window, or what is special about it, in a user's words."""
    amounts: Amounts
    """Of all steps."""
    consumer_cpu_s: float
    """CPU seconds of the loop's own process over all steps. Counted from the end of the first epoch's start-up on, and
    scaled up to all samples, so that starting workers and importing libraries is not spread over a few steps."""
    workers_cpu_s: float
    """CPU seconds of all processes below it, counted in the same way."""
    read_bytes: int | None = None
    """From the disk, by all of them (`/proc/PID/io: read_bytes`), over the whole run; None: not told."""
    logical_bytes: int | None = None
    """By reads, cached or not (`rchar`), over the whole run; what comes through pipes is in it. None: not told."""
    batch_ids: tuple[tuple[str, ...], ...] | None = None
    """Names of each batch's samples, where they were asked for; None: not asked for."""
    batches_made: tuple[BatchMade, ...] = ()
    """Only of runs that account; workers only."""
    uses: tuple[StageUse, ...] = ()
    """Only of runs that account."""
    device: str | None = None
    """Device that the consumer's batch was copied to (Ct); None: there is none."""
