"""Digests of one sample's fields, and whether two of them are the same value, up to rounding.

A digest says that a value is the same bit for bit. Numbers that were computed by another number of threads may differ in
their last bits; for floats a few values, the mean and the spread are kept beside the digest and compared closely.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xxhash

from headrace.contract.view import as_array, flatten, view_form
from headrace.doctor.probes.digests import digest

__all__ = ["Digests", "digest_fields", "exact_digests", "is_same", "whole_digest"]

Digests = Mapping[str, Sequence[Any] | None]
"""Field -> (digest, form, numbers of a float field or None); None: what has no bytes of its own and is not compared."""

MAX_FIELDS = 32
"""Fields of one sample that are compared: a list of a thousand words is not a table of a thousand columns."""
NUM_PLACES = 16
"""Places of an array that are looked at closely."""
RELATIVE = 1e-3
"""How far numbers may lie apart: the last bits of float16. A value of another sample lies much farther."""


def digest_fields(sample: Any) -> dict[str, Sequence[Any] | None]:
    """Returns the digests of a sample; empty for what cannot be looked into."""
    try:
        return {field: _digest(value) for field, value in itertools.islice(flatten(sample), MAX_FIELDS)}
    except Exception:  # a mapping or tensor of the user's own kind that fails when it is asked
        return {}


def _digest(value: Any) -> Sequence[Any] | None:
    if value is None or isinstance(value, (str, bytes, bytearray)):
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value or b"")
        return xxhash.xxh3_64_hexdigest(data), type(value).__name__, None
    array = as_array(value)
    if array is None:
        return None
    content = np.ascontiguousarray(array)
    form = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    numbers = _numbers(content) if array.dtype.kind == "f" else None
    return xxhash.xxh3_64_hexdigest(content.tobytes()), form, numbers


def exact_digests(sample: Any) -> dict[str, str | None]:
    """Returns `int64[3]:` and a digest for every field, for a comparison bit for bit; None: it has no bytes of its own.

    The digest is of dtype, shape and bytes: a number, an array and a tensor of the same dtype are the same value. What is
    no array, text or bytes is pickled.
    """
    return {field: _exact(field, value) for field, value in flatten(sample)}


def _exact(field: str, value: Any) -> str | None:
    found = _digest(value)
    if found is not None:
        form = view_form(field, value)
        # What numpy has no dtype for was widened: its own name tells it from what was wide before.
        name = found[1] if form.kind != "tensor" else f"{form.dtype}[{', '.join(map(str, form.shape or ()))}]"
        return f"{name}:{found[0]}"
    other = digest(value)
    return None if other is None else f"{type(value).__name__}:{other}"


def _numbers(array: Any) -> list[float | str]:
    flat = array.reshape(-1).astype(np.float64)
    if flat.size == 0:
        return []
    places = np.linspace(0, flat.size - 1, min(NUM_PLACES, flat.size)).astype(int)
    with np.errstate(all="ignore"):
        found = [float(flat.mean()), float(flat.std()), *map(float, flat[places])]
    return [number if math.isfinite(number) else str(number) for number in found]  # JSON has no nan


def is_same(one: Sequence[Any] | None, other: Sequence[Any] | None) -> bool:
    """True for equal values; also for what cannot be compared."""
    if one is None or other is None or tuple(one[:2]) == tuple(other[:2]):
        return True
    if one[1] != other[1] or one[2] is None or other[2] is None or len(one[2]) != len(other[2]):
        return False
    numbers = [number for number in (*one[2], *other[2]) if not isinstance(number, str)]
    # Rounding is measured against the size of the whole field: near zero nothing is left of a relative error.
    scale = max(map(abs, numbers), default=0.0)
    return all(_close(a, b, scale) for a, b in zip(one[2], other[2], strict=True))


def _close(one: float | str, other: float | str, scale: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= RELATIVE * scale


def whole_digest(digests: Digests) -> str | None:
    """Returns one digest for a whole sample; None if a part of it has none."""
    parts = sorted((field, one) for field, one in digests.items())
    if not parts or any(one is None for _, one in parts):
        return None
    return xxhash.xxh3_128_hexdigest(repr([(field, *one[:2]) for field, one in parts if one is not None]).encode())
