"""Batches of a Hugging Face `Dataset`, gathered from the Arrow memory that it stands on.

What its user gets from torch defines the batch: `default_collate(dataset.__getitems__(rows))`, with the types that the
data set's format gives. Formats are that library's affair and change with its versions, so each data set is tried on
two rows before it is trusted; what is not known or not equal goes the plain way. The library is never imported here.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.source.arrow_memory import Asked, Values, column_values
from headrace.engine.source.gathering import NotGathered

__all__ = ["gather_huggingface", "is_huggingface"]

Rows = npt.NDArray[np.int64]
Join = Callable[[Any], Any]
"""Makes of gathered values what the format and then collate make of the rows."""

PLAIN_FEATURES = {"Value", "ClassLabel", "List", "LargeList", "Sequence"}
"""Classes of features whose values are what Arrow holds: nothing is decoded."""


def is_huggingface(dataset: Any) -> bool:
    """True for a `datasets.Dataset` itself, not a subclass, with the format python, numpy or torch."""
    library = sys.modules.get("datasets")  # whoever holds one has loaded it
    return library is not None and type(dataset) is library.Dataset and dataset._format_type in _JOINS


def gather_huggingface(dataset: Any, rows: Rows) -> dict[str, Any]:
    """Returns the batch of some rows at once.

    Raises:
        NotGathered: a transform, a format with options, columns with nulls, features that are decoded, ...
    """
    state = _state(dataset)
    known = _known.get(dataset)
    # A format is set in place, so what was made for another one may be out of date. Tables are compared as objects.
    if known is None or not all(
        a is b or (isinstance(a, str) and a == b) for a, b in zip(known[0], state, strict=True)
    ):
        known = (state, _tried(dataset))
        _known[dataset] = known
    gather = known[1]
    if gather is None:
        raise NotGathered
    return gather(rows)


_known: weakref.WeakKeyDictionary[Any, tuple[tuple[Any, ...], Callable[[Rows], dict[str, Any]] | None]] = (
    weakref.WeakKeyDictionary()
)
"""What gathers the rows of each data set that was met, with the state it was made for; None: nothing does."""


def _state(dataset: Any) -> tuple[Any, ...]:
    options = f"{dataset._format_type} {dataset._format_columns} {dataset._format_kwargs} {dataset._output_all_columns}"
    return dataset._data, dataset._indices, dataset._info.features, options


def _tried(dataset: Any) -> Callable[[Rows], dict[str, Any]] | None:
    """Returns what gathers rows, if it makes of the first and the last one what the plain way makes of them."""
    from torch.utils.data import default_collate

    try:
        gather = _gather_of(dataset)
        rows = np.array([0, len(dataset) - 1], dtype=np.int64)
        return gather if _is_same(gather(rows), default_collate(dataset.__getitems__(rows.tolist()))) else None
    except Exception:
        return None  # whatever is wrong with it, the plain way says it


def _gather_of(dataset: Any) -> Callable[[Rows], dict[str, Any]]:
    if dataset._format_kwargs or (dataset._output_all_columns and dataset._format_columns is not None):
        raise NotGathered
    join = _JOINS[dataset._format_type]
    table = getattr(dataset._data, "table", dataset._data)
    wanted = dataset._format_columns
    names = [name for name in table.column_names if wanted is None or name in wanted]
    if not names:
        raise NotGathered
    columns: list[tuple[str, Values]] = []
    for name in names:
        feature = dataset._info.features[name]
        while type(feature).__name__ in {"List", "LargeList", "Sequence"}:
            feature = feature.feature
        if type(feature).__name__ not in PLAIN_FEATURES:
            raise NotGathered
        columns.append((name, column_values(table[name])))
    chosen = None if dataset._indices is None else column_values(dataset._indices.column(0))

    def gather(rows: Rows) -> dict[str, Any]:
        asked = Asked(rows if chosen is None else chosen(Asked(rows)).astype(np.int64))
        return {name: join(values(asked)) for name, values in columns}

    return gather


# What each format makes of a column. Text is a list already; numbers are an array (B, ...).


def _widened(values: npt.NDArray[Any], floating: npt.DTypeLike) -> npt.NDArray[Any]:
    """Returns the values as int64, as the floating type, or as bool."""
    if values.dtype == np.uint64 or values.dtype.kind not in "biuf":
        raise NotGathered
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == "b" or values.dtype == floating:
        return values
    if np.isnan(values).any():  # which bits a NaN has after a conversion depends on the processor's instruction
        raise NotGathered
    return values.astype(floating)


def _as_python(values: Any) -> Any:
    import torch

    if isinstance(values, list):
        return values
    wide = _widened(values, np.float64)
    if wide.ndim > 2:
        raise NotGathered
    if wide.ndim == 1:
        return torch.from_numpy(wide)
    # Collate joins lists place by place: a tensor (B,) for each place in the list.
    return list(torch.from_numpy(wide.T.copy()).unbind())


def _as_numpy(values: Any) -> Any:
    import torch

    if isinstance(values, list):
        return list(_text(values))
    return torch.from_numpy(_widened(values, np.float32))


def _as_torch(values: Any) -> Any:
    import torch

    if isinstance(values, list):
        return _text(values).tolist()
    return torch.from_numpy(_widened(values, np.float32))


def _text(values: list[Any]) -> npt.NDArray[Any]:
    if isinstance(values[0], bytes):
        raise NotGathered
    return np.asarray(values)  # as those formats do, which drops zero characters at the end


_JOINS: dict[str | None, Join] = {None: _as_python, "numpy": _as_numpy, "torch": _as_torch}


def _is_same(a: Any, b: Any) -> bool:
    """True if two batches are equal in structure, types and bytes."""
    import torch

    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(_is_same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, torch.Tensor):
        same_form = a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
        return bool(same_form and a.numpy().tobytes() == b.numpy().tobytes())
    return bool(a == b)
