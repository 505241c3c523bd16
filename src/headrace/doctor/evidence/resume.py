"""What short runs say of resuming: each is compared, step by step, with a run that was never interrupted."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = ["Difference", "ResumeRuns", "ResumeTrial"]

Difference = Literal["nothing", "anew", "samples", "order", "loss", "failed"]
"""What differs first. anew: it began with step 0 again; samples: others than in the whole run; order: the same
samples of that epoch in another order; loss: the same samples with another loss; failed: the resumed run raised."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTrial:
    """One way to interrupt a run and to go on."""

    kind: Literal["stopped", "stopped-at-epoch-end", "killed", "terminated", "resumed-twice", "other-workers"]
    """stopped: by `max_steps`; killed: by SIGKILL; terminated: by SIGTERM; resumed-twice: interrupted and gone on with,
    two times; other-workers: gone on with another number of workers."""
    at_step: int
    """Steps that were taken before the interruption."""
    resumed_from: int | None
    """Step of the whole run with which the resumed one went on; None: none fits."""
    num_compared: int
    """Steps that were held against the whole run."""
    differs: Difference
    first_difference: int | None = None
    """Step of the whole run at which the first difference is."""
    num_repeated: int = 0
    """Samples of the interrupted epoch that came again."""
    num_missing: int = 0
    """Samples of that epoch that never came."""
    sample_ids: tuple[SampleId, ...] = ()
    """The first samples that came again or were left out."""
    is_right_number: bool = False
    """True if exactly as many batches as were left of the epoch came."""
    order_of_epoch: int | None = None
    """The epoch of the whole run whose order the resumed run repeated, from 0; None: none."""
    losses: tuple[float, float] | None = None
    """(loss of the whole run, loss of the resumed one) at the first difference."""
    steps_until_loss: int = 0
    """Resumed steps whose loss was still equal before the first that was not."""
    error: str = ""
    """For `failed`: the last line of the traceback."""
    num_workers: tuple[int, int] | None = None
    """For other-workers: (before, after)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRuns(Evidence):
    """All trials of one training function."""

    function: str
    """TARGET."""
    num_steps: int
    """Length of the whole run."""
    steps_per_epoch: int | None
    """None: the whole run did not come to the end of an epoch."""
    ids_known: bool
    """True if the loader says which samples it draws; else batches are compared by digests of their content, or
    losses alone."""
    repeatable: Literal["losses", "samples", "nothing"]
    """What two whole runs have in common: losses (and samples), samples alone, or not even these."""
    trials: tuple[ResumeTrial, ...]
