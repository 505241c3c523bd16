"""Compares contents without keeping them: digests by field, and how far two readings of one sample are apart."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.contract.view import as_array, flatten

__all__ = ["Content", "content_of", "digest"]

MAX_KEPT_BYTES = 4 << 20
"""Numeric fields up to this size are kept for a moment, so that the size of a difference can be told."""
TINY = 1e-5
"""A relative difference below this is the rounding of float32 arithmetic, and no other sample."""


class Content:
    """What one sample or batch held at one moment: it may have been overwritten since."""

    def __init__(
        self,
        digests: dict[str, str | None],
        arrays: dict[str, npt.NDArray[Any]],
        labels: frozenset[str] = frozenset(),
    ) -> None:
        self.digests = digests
        """Field -> digest; None: the field's content has no digest."""
        self.arrays = arrays
        """Copies of the numeric fields that are small enough."""
        self.labels = labels
        """Fields that are one number or text: a name, a class, the time of the request."""

    def differing(self, other: Content) -> tuple[str, ...]:
        """Returns the fields that both have and that hold something else, rounding apart; fields that one lacks too."""
        fields = dict.fromkeys([*self.digests, *other.digests])
        return tuple(field for field in fields if self._differs(field, other))

    def _differs(self, field: str, other: Content) -> bool:
        if (field in self.digests) != (field in other.digests):
            return True
        ours, theirs = self.digests[field], other.digests[field]
        if ours is None or theirs is None or ours == theirs:
            return False
        a, b = self.arrays.get(field), other.arrays.get(field)
        if a is None or b is None or a.shape != b.shape or a.dtype.kind != "f" or b.dtype.kind != "f":
            return True
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return True
        scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
        return float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) > TINY * scale

    def mean(self, field: str) -> float | None:
        """Returns the mean of a numeric field; None where it was not kept or has no finite mean."""
        array = self.arrays.get(field)
        if array is None or not array.size:
            return None
        mean = float(array.mean(dtype=np.float64))
        return mean if np.isfinite(mean) else None


def content_of(sample: Any) -> Content:
    """Returns what a sample or batch holds now."""
    digests: dict[str, str | None] = {}
    arrays: dict[str, npt.NDArray[Any]] = {}
    labels: list[str] = []
    for field, value in flatten(sample):
        digests[field] = digest(value)
        array = as_array(value)
        if array is None or array.ndim == 0:
            labels.append(field)
        if array is not None and array.nbytes <= MAX_KEPT_BYTES:
            arrays[field] = array.copy()
    return Content(digests, arrays, frozenset(labels))


def digest(value: Any) -> str | None:
    """Returns a digest of one leaf: class, dtype, shape and bytes; None for what can be neither viewed nor pickled."""
    hashed = xxhash.xxh3_128(type(value).__qualname__.encode())
    array = as_array(value)
    if array is not None:
        hashed.update(f"{array.dtype}{array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
        return hashed.hexdigest()
    try:
        hashed.update(value.encode() if isinstance(value, str) else pickle.dumps(value))
    except Exception:
        return None
    return hashed.hexdigest()
