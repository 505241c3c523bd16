"""The multiset of what was delivered, as two numbers, and its order, as one.

A sum and not an exclusive or: two samples that are both delivered twice would cancel out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Self

from headrace.errors import SampleId
from headrace.keys import derive_key

__all__ = ["IdSum", "chain_hash"]

MODULUS = 2**128


@dataclasses.dataclass(frozen=True, slots=True)
class IdSum:
    """Count and sum of keyed 128-bit hashes of ids. Merges over workers and ranks in any order: `a + b == b + a`."""

    count: int = 0
    total: int = 0

    @classmethod
    def of(cls, ids: Iterable[SampleId]) -> Self:
        """Returns that of some ids, each as often as it occurs."""
        count = total = 0
        for one in ids:
            count, total = count + 1, (total + derive_key("sameness id", one)) % MODULUS
        return cls(count, total)

    def __add__(self, other: IdSum) -> IdSum:
        return IdSum(self.count + other.count, (self.total + other.total) % MODULUS)


def chain_hash(batches: Iterable[Iterable[SampleId]]) -> int:
    """Returns one number for ids in their order and for where batches end."""
    found = 0
    for batch in batches:
        for one in batch:
            found = derive_key("sameness order", found, one)
        found = derive_key("sameness batch", found)
    return found
