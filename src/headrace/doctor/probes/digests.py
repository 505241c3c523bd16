"""Tells samples of a stream apart by their content, and finds the class of one. Runs where the sample is."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import xxhash

from headrace.contract.view import as_array, flatten

__all__ = ["digest", "label_of"]

_LABELS = {"label", "labels", "target", "targets", "y", "cls", "class", "class_id", "category", "category_id"}


def digest(sample: Any) -> str | None:
    """Returns a digest of a sample's fields; None: it has a part that cannot be written down."""
    content = xxhash.xxh3_128()
    for field, value in flatten(sample):
        content.update(f"{field}\0{type(value).__name__}\0".encode())
        array = as_array(value)
        if array is not None:
            content.update(f"{array.dtype}{array.shape}".encode())
            content.update(np.ascontiguousarray(array).tobytes())
            continue
        try:
            content.update(value.encode() if isinstance(value, str) else pickle.dumps(value))
        except Exception:
            return None
    return content.hexdigest()


def label_of(sample: Any) -> int | str | None:
    """Returns the class of a sample: a field of a usual name, or the second of two; None: it has none."""
    fields = list(flatten(sample))
    named = [value for field, value in fields if field.rpartition(".")[2].lower() in _LABELS]
    is_pair = len(fields) > 1 and isinstance(sample, (tuple, list)) and len(sample) == 2 and fields[-1][0] == "1"
    for value in named or ([fields[-1][1]] if is_pair else []):
        if isinstance(value, str):
            return value if len(value) < 100 else None
        array = as_array(value)
        if array is not None and array.size == 1 and array.dtype.kind in "iub":
            return int(array.reshape(()))
    return None
