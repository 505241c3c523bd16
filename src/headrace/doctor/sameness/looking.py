"""How large a difference is: two arrays in, numbers out. Close is told, and is not the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.doctor.evidence.equivalence import Difference

__all__ = ["describe_arrays"]


def describe_arrays(found: Difference, a: Mapping[str, Any], b: Mapping[str, Any]) -> Difference:
    """Returns a difference with what the two arrays of its field say. A lone number is shown, an array is not."""
    one, other = a.get(found.field or ""), b.get(found.field or "")
    if one is None or other is None or one.shape != other.shape:
        return found
    with np.errstate(all="ignore"):
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    differ = (one != other) & ~((one != one) & (other != other))  # noqa: PLR0124 - nan is not itself
    if not differ.any():
        return found  # another walk, another value: what was compared is gone
    finite = apart[np.isfinite(apart)]
    if one.ndim == 0:
        found = dataclasses.replace(found, in_a=f"{one} ({one.dtype})", in_b=f"{other} ({other.dtype})")
    return dataclasses.replace(
        found,
        max_difference=float(finite.max()) if finite.size else None,
        differing_share=float(differ.mean()),
    )
