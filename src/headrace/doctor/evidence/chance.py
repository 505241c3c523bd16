"""What fails now and then: samples that raise in one reading and come out in another."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence
from headrace.errors import SampleId

__all__ = ["ChanceFailure", "ChanceFailures"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChanceFailure:
    """Errors of one type at one place that strike some readings and spare others."""

    error_type: str
    message: str
    """First line of the first one."""
    stage: str
    at: str | None
    """`file:line in function` of the user's code."""
    sample_ids: tuple[SampleId, ...]
    """Samples that were seen to fail, the first ones."""
    num_read: int
    """Readings in one process that tell."""
    num_failed: int
    """Of those, readings that failed; 0: it was seen in workers only, too seldom to say that it is the workers."""
    num_worker_errors: int = 0
    """Errors in workers."""
    is_drawn: bool = False
    """True if the same seed fails again, and others do not: a random step draws it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChanceFailures(Evidence):
    """All that was seen to fail by chance, in one process and in workers."""

    failures: tuple[ChanceFailure, ...]
    num_own_workers: int
    """What the loader is set to."""
