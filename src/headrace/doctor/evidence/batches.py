"""What becomes of samples when they are joined, kept, and pinned."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = ["Dropping", "KeptBatches", "Overwrite", "PaddedField", "Paddings", "Pinning"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PaddedField:
    """One field of samples of several lengths that the batch holds in one length."""

    field: str
    """In the samples."""
    batch_field: str
    """In the batch."""
    lengths: tuple[int, int]
    """(shortest, longest) among the samples that were joined."""
    fill: str
    """What stands in the places that were added; a step of several numbers is written as `[0, 0, ...]`."""
    num_padded: int
    """Places that were added."""
    num_real: int
    """Times that the same value stands in the samples themselves."""
    real_ids: tuple[SampleId, ...]
    """Samples in which it does."""
    marked_by: str | None
    """The part of the batch that tells added places from real ones: a mask, lengths, offsets, another field that is
    filled with a value of its own; None: nothing does."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Paddings(Evidence):
    """How the loader's own collate function brings samples of several lengths into one batch."""

    collate: str
    sample_ids: tuple[SampleId, ...]
    fields: tuple[PaddedField, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dropping(Evidence):
    """Samples that the collate function leaves out: the batch is the same with them and without them."""

    collate: str
    num_tested: int
    """Samples that were tried, each beside one that stays."""
    dropped: tuple[SampleId, ...]
    num_none: int
    """Those of them that are None."""
    alone: str | None
    """What collate makes of a batch of nothing but such a sample: `None`, `a batch of 0`, `IndexError: ...`; None: nothing
    was dropped."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """Something that was handed over, and held something else after the next one had been made."""

    what: Literal["sample", "batch"]
    field: str
    first: SampleId
    """Names the one that was overwritten: a sample id, or `batch 1`."""
    second: SampleId
    shares_memory: bool
    """True if both lie in the same memory."""
    buffer: str | None
    """Attribute path of the array that they lie in, where it was found."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeptBatches(Evidence):
    """The first samples and batches, kept while the next ones were made, without workers."""

    sample: Overwrite | None
    batch: Overwrite | None
    copies_samples: bool
    """True if the loader takes one sample at a time and copies it, so that an overwritten sample does no harm."""
    num_batches: int
    """Batches that were drawn; 0: none could be."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pinning(Evidence):
    """Which tensors of a batch the installed torch's own pinning reaches."""

    is_wanted: bool
    """True if the loader was made with `pin_memory=True`."""
    torch: str
    """Version."""
    num_tensors: int
    unreached: tuple[str, ...]
    """Paths of the tensors that stay in pageable memory: `.images`, `[0].boxes`."""
    holders: tuple[str, ...]
    """Classes in which they lie, whose parts pinning does not know."""
