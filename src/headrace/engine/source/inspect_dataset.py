"""What a foreign data set tells about itself without being read: the path of a row, and its content in short."""

from __future__ import annotations

import bisect
import os
from typing import Any

import numpy as np
import xxhash

__all__ = ["describe", "path_of"]

PATH_LISTS = ("samples", "imgs", "paths", "files", "image_paths", "img_paths", "filenames")
"""Attributes in which data sets usually keep one path, or one tuple that starts with a path, per row."""


def path_of(dataset: Any, index: int) -> str | None:
    """Returns the path of a row, through wrappers such as torch's `Subset` and `ConcatDataset`; None if unknown.

    Never raises: attributes of foreign data sets may be properties that fail.
    """
    try:
        return _path_of(dataset, int(index))
    except Exception:
        return None


def _path_of(dataset: Any, index: int) -> str | None:
    if hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
        return _path_of(dataset.dataset, int(dataset.indices[index]))
    if hasattr(dataset, "datasets") and hasattr(dataset, "cumulative_sizes"):
        part = bisect.bisect_right(dataset.cumulative_sizes, index)
        before = dataset.cumulative_sizes[part - 1] if part else 0
        return _path_of(dataset.datasets[part], index - before)
    for name in PATH_LISTS:
        rows = getattr(dataset, name, None)
        # A list of another length is a list of something else.
        if rows is None or callable(rows) or len(rows) != len(dataset):
            continue
        row = rows[index]
        first = row[0] if isinstance(row, (tuple, list)) and row else row
        if isinstance(first, (str, os.PathLike)):
            return os.fspath(first)
    return None


def describe(dataset: Any, num_samples: int) -> str:
    """Returns a short text that tells data sets apart: class, length, and a digest of what it says of its content."""
    text = f"{type(dataset).__qualname__}/{num_samples}"
    content = _content(dataset)
    return f"{text}/{xxhash.xxh3_64_hexdigest(content)}" if content else text


def _content(dataset: Any) -> bytes:
    """Bytes that change with the content, as far as the data set tells; empty if it tells nothing."""
    own = getattr(dataset, "fingerprint", None) or getattr(dataset, "_fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own).encode()
    if hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
        # Two random splits of one data set have the same class and length and differ only here.
        rows = np.asarray(dataset.indices, dtype="<i8").tobytes()
        return describe(dataset.dataset, len(dataset.dataset)).encode() + b"|" + rows
    if hasattr(dataset, "datasets") and hasattr(dataset, "cumulative_sizes"):
        return "|".join(describe(part, len(part)) for part in dataset.datasets).encode()
    return b""
