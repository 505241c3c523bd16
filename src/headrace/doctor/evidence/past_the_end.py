"""What a data set answers beyond its last row."""

from __future__ import annotations

import dataclasses

from headrace.doctor.evidence.base import Evidence

__all__ = ["PastTheEnd"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PastTheEnd(Evidence):
    """Rows at and beyond `len(dataset)`, asked for by number."""

    dataset: str
    """Class of the data set."""
    num_samples: int
    has_iter: bool
    """True if the class has `__iter__`: then iterating does not ask for rows by number."""
    answered: tuple[int, ...]
    """Rows beyond the end for which a value came; empty if the end is known."""
    num_asked: int
    loops: tuple[str, ...]
    """`train.py:12` of each place in the user's files that iterates over such a data set and does not leave by itself."""
    defined_at: str | None
    """`file.py:9` of `__getitem__`."""
