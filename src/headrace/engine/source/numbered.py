"""Identity where nothing but its place tells one row from another: the row number."""

from __future__ import annotations

import operator

import numpy.typing as npt
from numpy import int64

from headrace.errors import SampleId

__all__ = ["NumberedRows"]


class NumberedRows:
    """What sources share whose rows have no other names; they say how many there are."""

    def __len__(self) -> int:
        raise NotImplementedError

    def sample_id(self, index: int) -> int:
        """Returns the row number."""
        return operator.index(index)

    def sample_ids(self, rows: npt.NDArray[int64]) -> tuple[int, ...]:
        """Returns the row numbers of some rows."""
        return tuple(rows.tolist())

    def index_of(self, sample_id: SampleId) -> int:
        """Returns the row of an identity, which is that number; ValueError if there is no such row."""
        if isinstance(sample_id, int) and 0 <= sample_id < len(self):
            return sample_id
        raise ValueError(f"no row has the id {sample_id!r}")
