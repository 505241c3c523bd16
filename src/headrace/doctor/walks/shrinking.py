"""Shrinks what makes something fail to the fewest parts that still do. Pure: how a try is made is the caller's.

Delta debugging. Source: A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (ddmin).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

__all__ = ["Shrunk", "shrink"]

ItemT = TypeVar("ItemT")


@dataclasses.dataclass(frozen=True, slots=True)
class Shrunk(Generic[ItemT]):
    """What is left."""

    items: tuple[ItemT, ...]
    """In their first order. All of them were seen to fail together."""
    num_tries: int
    is_fewest: bool
    """True if leaving out any single one of them was seen not to fail."""


def shrink(
    items: Sequence[ItemT], fails: Callable[[Sequence[ItemT]], bool], *, max_tries: int = 64
) -> Shrunk[ItemT] | None:
    """Returns the fewest items that still fail; None if not even all of them fail (again).

    Args:
        items: What failed once.
        fails: Tries some of them, in order; True if they fail. Called at most once for the same selection.
        max_tries: Calls at most; what is left then is returned.
    """
    known: dict[tuple[int, ...], bool] = {}

    def try_out(places: Sequence[int]) -> bool | None:
        """None: no try is left."""
        key = tuple(places)
        if key not in known:
            if len(known) >= max_tries:
                return None
            known[key] = fails([items[place] for place in key])
        return known[key]

    kept = list(range(len(items)))
    if not kept or not try_out(kept):
        return None
    num_parts, is_out_of_tries = 2, False
    while len(kept) > 1 and not is_out_of_tries:
        parts = _parts(kept, num_parts)
        rests = [[place for place in kept if place not in part] for part in parts] if num_parts > 2 else []
        smaller = None
        for candidate in [*parts, *rests]:
            answer = try_out(candidate)
            is_out_of_tries = is_out_of_tries or answer is None
            if answer:
                smaller = candidate
                break
        if smaller is not None:
            num_parts = 2 if smaller in parts else max(2, num_parts - 1)
            kept = smaller
        elif num_parts == len(kept):
            break
        else:
            num_parts = min(len(kept), 2 * num_parts)
    return Shrunk(tuple(items[place] for place in kept), len(known), not is_out_of_tries)


def _parts(places: Sequence[int], number: int) -> list[list[int]]:
    """Divides into parts of nearly equal size, none empty."""
    bounds = [part * len(places) // number for part in range(number + 1)]
    return [list(places[start:end]) for start, end in itertools.pairwise(bounds) if end > start]
