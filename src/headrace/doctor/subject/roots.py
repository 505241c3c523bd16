"""Follows rows through subsets and concatenations to the data sets underneath, and asks those for cheap labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.doctor.subject.looking import attribute
from headrace.doctor.subject.looking import length as _length

__all__ = ["cheap_labels", "layers_of", "root_rows"]

_MAX_DEPTH = 8
_WRAPPED = ("dataset", "base", "subset", "data_set", "base_dataset", "inner", "source", "ds", "_dataset", "data")
"""Attributes under which wrappers with transforms of their own keep the data set they wrap."""
_LABELS = ("targets", "labels", "train_labels", "y", "_labels", "label", "classes_of")
MAX_LISTED = 2_000_000
"""Rows of an in-memory list whose labels are picked out one by one."""

Root = tuple[Any, npt.NDArray[np.int64]]
"""(data set, one row of it for each row asked for; -1: the row lies in another one)."""


def root_rows(dataset: Any, rows: npt.NDArray[np.int64], depth: int = 0) -> list[tuple[Any, npt.NDArray[np.int64]]]:
    """Returns, per data set underneath, the rows of it that these rows are.

    Args:
        dataset: What a loader reads from.
        rows: Rows of it; any length, any order.
        depth: Wrappers that were looked through already.
    """
    if depth < _MAX_DEPTH:
        inner, indices = attribute(dataset, "dataset"), attribute(dataset, "indices")
        if inner is not None and indices is not None and _has_length(indices, _length(dataset)):
            return root_rows(inner, np.asarray(indices, np.int64)[rows], depth + 1)
        parts = attribute(dataset, "datasets")
        if isinstance(parts, (list, tuple)) and parts and sum(filter(None, map(_length, parts))) == _length(dataset):
            return list(_of_parts(parts, rows, depth))
        wrapped = _wrapped(dataset)
        if wrapped is not None:
            return root_rows(wrapped, rows, depth + 1)
    return [(dataset, rows)]


def _of_parts(parts: Sequence[Any], rows: npt.NDArray[np.int64], depth: int) -> Iterator[Root]:
    start = 0
    for part in parts:
        length = len(part)
        inside = rows[(rows >= start) & (rows < start + length)] - start
        if len(inside):
            yield from root_rows(part, inside, depth + 1)
        start += length


def _wrapped(dataset: Any) -> Any:
    """What a wrapper that keeps rows as they are wraps: a data set of the same length under one of the usual names."""
    length = _length(dataset)
    for name in _WRAPPED:
        inner = getattr(dataset, "__dict__", {}).get(name)
        is_dataset = inner is not None and hasattr(type(inner), "__getitem__") and hasattr(type(inner), "__len__")
        if is_dataset and _looks_like_dataset(inner) and length is not None and _length(inner) == length:
            return inner
    return None


def _looks_like_dataset(value: Any) -> bool:
    """A data set and not the records that one keeps: a class of a data library's or of the user's own."""
    kinds = type(value).__mro__
    return any(kind.__name__ in {"Dataset", "Subset"} for kind in kinds) or hasattr(value, "indices")


def layers_of(dataset: Any) -> Iterator[Any]:
    """Yields a data set and those inside it, from the outside in."""
    pending, seen = [dataset], set[int]()
    while pending and len(seen) < _MAX_DEPTH:
        one = pending.pop(0)
        if one is None or id(one) in seen or isinstance(one, (str, int, float, np.ndarray)):
            continue
        seen.add(id(one))
        yield one
        parts = attribute(one, "datasets")
        pending += [attribute(one, "dataset"), _wrapped(one), *(parts if isinstance(parts, (list, tuple)) else ())]


def cheap_labels(dataset: Any) -> npt.NDArray[np.int64] | None:
    """Returns the class of every row as small numbers, where the data set knows it without preparing a sample.

    None: it does not, or the targets are no classes (numbers with fractions, or about as many values as rows).
    """
    length = _length(dataset)
    if not length:
        return None
    parts = []
    for root, rows in root_rows(dataset, np.arange(length)):
        labels = _of_root(root)
        if labels is None:
            return None
        parts.append(np.asarray(labels)[rows])
    joined = np.concatenate(parts) if len({part.dtype.kind for part in parts}) == 1 else np.zeros(0)
    if len(joined) != length:
        return None
    names, numbers = np.unique(joined, return_inverse=True)
    is_class = 2 <= len(names) <= max(2, length // 5)
    return numbers.astype(np.int64) if is_class else None


def _of_root(dataset: Any) -> Any:
    length = _length(dataset) or 0
    for name in _LABELS:
        if (labels := _as_labels(attribute(dataset, name), length)) is not None:
            return labels
    for name in ("samples", "imgs", "items", "records", "rows", "files", "data", "pairs", "entries"):
        if (labels := _of_records(attribute(dataset, name), length)) is not None:
            return labels
    tensors = attribute(dataset, "tensors")
    if isinstance(tensors, (list, tuple)) and len(tensors) > 1:
        return _as_labels(tensors[-1], length)
    return _of_records(dataset, length) if isinstance(dataset, (list, tuple)) else None


def _of_records(records: Any, length: int) -> Any:
    """The labels of a list of (anything, label), or of dicts with a label."""
    if not isinstance(records, (list, tuple)) or len(records) != length or not 0 < length <= MAX_LISTED:
        return None
    if all(isinstance(record, tuple) and len(record) == 2 for record in records):
        return _as_labels([record[1] for record in records], length)
    if all(isinstance(record, dict) for record in records):
        name = next((name for name in ("label", "target", "y", "class", "category", "cls") if name in records[0]), None)
        return None if name is None else _as_labels([record.get(name) for record in records], length)
    return None


def _as_labels(values: Any, length: int) -> Any:
    """A flat array of whole numbers or texts, one per row; None if it is none."""
    if values is None or callable(values) or not _has_length(values, length):
        return None
    try:
        array = np.asarray(values)
    except Exception:  # a tensor elsewhere, a ragged list
        return None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "iubUS":
        return None
    return array


def _has_length(value: Any, length: int | None) -> bool:
    return length is not None and _length(value) == length
