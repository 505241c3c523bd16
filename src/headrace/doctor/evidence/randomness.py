"""What workers draw: states of random generators at the same places of several workers and epochs."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence

__all__ = ["GeneratorDraws", "WorkerDraws"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorDraws:
    """One random generator, followed through several workers and two epochs."""

    path: str
    """`dataset.transform.rng`, or `random`, `numpy.random`, `torch` for the interpreter's own."""
    kind: str
    """`numpy.Generator`, `random.Random`, ...; for the interpreter's own its name."""
    is_held: bool
    """True for an object that the data set or collate function holds."""
    num_moved: int
    """Samples, over all workers of an epoch, in which it was drawn from."""
    num_followed: int
    """Samples that were followed."""
    same_over_workers: bool | None
    """True if two workers draw the same numbers; None: only one worker, or too few draws to say."""
    same_over_epochs: bool | None
    """True if a worker draws in epoch 2 what it drew in epoch 1; None: too few draws to say."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDraws(Evidence):
    """Every random generator that was found, in each worker of two epochs."""

    num_workers: int
    num_own_workers: int
    """What the loader is set to; 0: it uses none, and workers were added to look."""
    is_persistent: bool
    """True if both epochs had the same workers."""
    is_iterable: bool
    role: Literal["train", "evaluation"] | None
    worker_init_fn: str | None
    """Name and place of the loader's own function; None: it has none."""
    generators: tuple[GeneratorDraws, ...]
