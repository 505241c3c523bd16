"""Holm's correction: several candidates against one setting are several chances to be wrong."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values that keep the chance of any false claim at the level they are compared with, in the same order.

    Valid however the tests depend on each other, as they do here: all share the rounds of the present setting.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    greatest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = greatest
    return corrected
