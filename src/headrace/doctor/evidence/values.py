"""Where values that are no numbers come from."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = ["NonFiniteField", "NonFiniteValues"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NonFiniteField:
    """One field that holds NaN or infinity in some samples, from one origin."""

    field: str
    kind: Literal["NaN", "infinity", "NaN and infinity"]
    num_values: int
    """Such values in all these samples together."""
    sample_ids: tuple[SampleId, ...]
    origin: Literal["computed", "stored", "file", "collate", "unknown"]
    """computed: an operation on finite numbers gave it; stored: the data set holds it; file: no operation gave it, and
    the sample is read from a file; collate: the samples are finite and their batch is not."""
    where: str | None = None
    """`file.py:12` of the operation, attribute path of the store, or path of the file."""
    detail: str = ""
    """The operation's line of code."""
    is_single: bool = False
    """True for a single number, such as a table's cell."""
    is_target: bool = False
    is_declared: bool = False
    """True if the sample says itself which values are missing, by a mask beside them; or if the field is a mask of 0 and
    -infinity, as attention takes it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NonFiniteValues(Evidence):
    """The examined samples' values that are no numbers."""

    num_examined: int
    fields: tuple[NonFiniteField, ...]
