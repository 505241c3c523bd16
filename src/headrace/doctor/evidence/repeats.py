"""What comes of reading samples again in one process."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = ["ChangedPart", "Repeats", "SampleRepeat"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPart:
    """One thing that reading a sample changed; put back, it makes the sample what it was."""

    path: str
    """Attribute path: `dataset.images[3]`."""
    kind: Literal["content", "value", "removed", "replaced"]
    """content: values of an array, tensor or image; value: a number or text; removed: an entry that is gone;
    replaced: another object in its place."""
    is_of_sample: bool
    """True if it is the store of this one sample; False for what all samples share: a counter, a statistic."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SampleRepeat:
    """One sample, read several times with the random generators that can be seen set back to the same states."""

    index: int
    sample_id: SampleId
    outcome: Literal["equal", "differs", "fails", "unreadable"]
    """equal: the same seed gives the same sample; differs: it does not; fails: a later reading raises; unreadable:
    the first one did."""
    fields: tuple[str, ...] = ()
    """Fields that differ, and that come back when `changed` is put back; those that differ, if nothing was proven."""
    changed: tuple[ChangedPart, ...] = ()
    """What was proven to be the cause; empty: nothing was. What only differs may come from a generator that cannot be
    seen, from the clock, or from a state that was not found."""
    means: tuple[float, float] | None = None
    """(earlier, later) mean of the first of these fields, where it is numeric."""
    error: str | None = None
    """For `fails`: the exception, on one line."""
    error_at: str | None = None
    drawn_first: tuple[str, ...] = ()
    """Random generators that the very first reading moved: `random`, `numpy.random`, `torch`, or an attribute path."""
    drawn_later: tuple[str, ...] = ()
    """Those that any later reading moved."""
    num_seeds: int = 0
    """Readings under seeds of their own."""
    is_same_under_seeds: bool = False
    """True if all of them gave the same sample, byte for byte."""
    seedings: tuple[str, ...] = ()
    """Calls that seed a global generator during a reading: `numpy.random.seed(0) at train.py:9`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repeats(Evidence):
    """Chosen samples, each read several times in one process that had read nothing before."""

    samples: tuple[SampleRepeat, ...]
    holds_records: bool
    """True if the samples come from somewhere: a file was opened, or the data set holds as many entries as samples.
    False: they are made up at each reading, as synthetic data are."""
    draws: tuple[str, ...]
    """Random steps in the code that ran: `train.py:33 random.random()`."""
    draws_later: tuple[str, ...]
    """Those in code that ran at a second or later reading of a sample."""
    constant_generators: tuple[str, ...]
    """Generators that this code makes or seeds with the same value for every sample, and draws from:
    `train.py:9 np.random.default_rng(0)`."""
    is_evaluation: bool = False
    """True if the data set says that it is not for training: a split or mode named val or test, `train=False`."""
