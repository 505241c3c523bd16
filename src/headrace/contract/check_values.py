"""Holds values against the declared range, classes and rule on NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.contract.field import Field

__all__ = ["value_faults"]


def value_faults(field: Field, array: npt.NDArray[Any]) -> list[tuple[str, str]]:
    """Returns (expected, found) for each rule on values that the array breaks."""
    if array.size == 0:
        return []
    faults = []
    if array.dtype.kind == "f":
        # NaN wins both min and max, so the exact counts are made only when there is something to count.
        low, high = array.min(), array.max()
        if not (np.isfinite(low) and np.isfinite(high)):
            for name, allowed, count in (
                ("NaN", field.allow_nan, int(np.isnan(array).sum())),
                ("infinite", field.allow_inf, int(np.isinf(array).sum())),
            ):
                if count and not allowed:
                    faults.append((f"no {name} value", f"{count:,} of {array.size:,} values {name}"))
            array = array[np.isfinite(array)]
    low_bound, high_bound = field.bounds
    if array.size == 0 or (low_bound is None and high_bound is None):
        return faults
    if field.ignore_index is not None and not _within(array, low_bound, high_bound):
        array = array[array != field.ignore_index]
    if array.size and not _within(array, low_bound, high_bound):
        low, high = array.min().item(), array.max().item()
        odd = low if low_bound is not None and low < low_bound else high
        classes = "" if field.num_classes is None else f" ({field.num_classes} classes)"
        faults.append((f"values in {_range_text(low_bound, high_bound)}{classes}", f"{odd!r}"))
    return faults


def _within(array: npt.NDArray[Any], low: float | None, high: float | None) -> bool:
    # Compared as Python numbers: exact for integers of every width, where numpy would round or refuse.
    return (low is None or array.min().item() >= low) and (high is None or array.max().item() <= high)


def _range_text(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f">= {low}" if high is None else f"<= {high}"
    return f"{low}..{high}"
