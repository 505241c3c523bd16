"""What `watch` saw of each loader in a running script."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence

__all__ = ["LoaderTrace", "LoaderTraces", "PassTrace"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PassTrace:
    """One walk through a loader: from `iter(loader)` to its end, or to where the loop left it."""

    started_s: float
    """Seconds since the script started."""
    wall_s: float
    first_wait_s: float
    """Seconds from before `iter(loader)` to the first batch: starting workers is in it."""
    wait_s: float
    """Seconds in which the loop waited for batches, the first one not counted."""
    longest_waits_s: tuple[float, ...]
    """The ten longest waits, longest first, the first batch not counted."""
    num_batches: int
    num_samples: int | None
    """None: the loader does not say what it draws."""
    is_exhausted: bool
    """False: the loop left it before its end."""
    order_hash: int | None
    """Hash of the order of sample numbers that the sampler gave; None: not known."""
    num_worker_starts: int
    """Worker processes that were started for this walk."""
    num_steps: int
    """Optimizer steps during it."""
    first_batch_hash: int | None = None
    """Hash of the sample numbers of its first batch; None: not known."""
    is_made_anew: bool = False
    """True if the loader was made anew for it, so that its workers had to be started whatever its settings say."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoaderTrace:
    """One loader of the script: one object, or several that one call made one after another over the same data."""

    number: int
    """In the order of their making, over the whole process; names the loader in other evidence."""
    where: str | None
    """`file:line` of the user's code that made it."""
    kind: str
    role: Literal["train", "evaluation", "unused", "unknown"]
    """train: optimizer steps follow its batches; evaluation: other loaders are trained on, this one is only read."""
    dataset_kind: str
    num_samples: int | None
    batch_size: int | None
    drop_last: bool
    num_workers: int
    persistent_workers: bool
    sampler_kind: str
    shuffles: bool
    """True if its sampler draws an order."""
    has_set_epoch: bool
    """True if its sampler, batch sampler or data set has `set_epoch`."""
    num_set_epochs: int
    """Calls of it, with different values."""
    is_distributed: bool
    """True for a sampler that deals samples out to ranks."""
    iter_places: tuple[tuple[str, int], ...]
    """`file:line` of the user's code that called `iter(loader)`, and how often."""
    passes: tuple[PassTrace, ...]
    """The first fifty and the last fifty."""
    num_passes: int
    num_drawn: int
    """Different samples of the root data set that it drew; 0 if not known."""
    root: str | None
    """Names the data set under all wrappers, the same for loaders that share it; None: not known."""
    num_worker_starts: int = 0
    """Worker processes that were started for all its passes."""
    num_short_passes: int = 0
    """Passes that the loop left after one batch at most, although there were more."""
    num_library_passes: int = 0
    """Passes that a training library began, and not the user's own code."""
    batch_s: float | None = None
    """Seconds in which one worker prepares a batch, on average; None: not measured."""
    has_moved_samples: bool | None = None
    """True if its first batch was not the same in all passes; None: not known."""
    num_made: int = 1
    """Loader objects that it consists of; 2 or more: the script makes it anew, e.g. for each epoch."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LoaderTraces(Evidence):
    """Every loader that the script walked through."""

    script: str
    wall_s: float
    rank: int
    world_size: int
    loaders: tuple[LoaderTrace, ...]
    overlaps: tuple[tuple[int, int, int, tuple[int, ...]], ...]
    """(training loader, evaluation loader, number of samples that both drew, the first few of them)."""
    outcome: Literal["finished", "interrupted", "failed", "running"]
    """interrupted: Ctrl-C or SIGTERM; failed: an exception left the script."""
    weights_began_s: float | None = None
    """Seconds after the script's start from which on only optimizer steps changed its models' weights: an optimizer was
    made then, or weights were put back or loaded. None: no optimizer was seen."""
    num_unlisted: int = 0
    """Loaders beyond the first three hundred, which were not looked at."""
