"""Whole batches at once: one gather per field instead of one object per sample, and what it may be used for.

A gather is a short cut of read and collate in one, for containers whose rows need no code of anybody's:

    read_many(rows) ──▶ default_collate        the plain way, which defines the batch
    gather(rows) ─────────────────────▶        the same batch: structure, dtypes, shapes, bytes

What is not known to give the same is refused by `NotGathered`, and goes the plain way. Torch is imported where used.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from headrace.engine.source.columns import Column, is_tensor, take_rows

__all__ = [
    "Gathering",
    "NotGathered",
    "collates_by_torch",
    "column_gather",
    "gather_columns",
    "gather_dataset",
    "has_torch_rules",
    "is_gathered",
]

Rows = npt.NDArray[np.int64]
ColumnGather = Callable[[Rows, Any], Any]
"""Takes row numbers as an array and as a tensor."""

GATHERED_DTYPES = frozenset("?bBhHiIlLqQefdFD")
"""numpy's characters for bool, integers, float16 to float64 and complex64 and 128: what torch has as well."""


@runtime_checkable
class Gathering(Protocol):
    """What a source may offer beyond `protocols.Source`."""

    @property
    def gathers(self) -> bool:
        """False if `gather` would refuse anyway; True promises nothing."""
        ...

    def gather(self, rows: Rows) -> Any:
        """Returns what torch's `default_collate(read_many(rows))` returns, made without one object per row.

        Args:
            rows: (B,) row numbers, B >= 1, each in [0, N) as orders promise.

        Raises:
            NotGathered: it cannot promise that. Any exception sends the caller the plain way, which names the sample.
        """
        ...


class NotGathered(Exception):
    """These rows have to be read one by one; never seen by users."""


def column_gather(column: Column) -> ColumnGather:
    """Returns what gathers rows of one column as collate joins them: into a tensor, or a list of text.

    Raises:
        NotGathered: torch's rules do not join such rows, or give them a layout of their own.
    """
    import torch

    if 0 in column.shape[1:]:  # nothing to copy, and torch gives empty rows strides of their own
        raise NotGathered
    if is_tensor(column):
        if not _is_plain_tensor(column):
            raise NotGathered
        return lambda _rows, index: torch.index_select(column, 0, index)
    dtype = column.dtype
    plain = np.asarray(column)  # a memory map would wrap every result once more
    if dtype.kind in "US" and column.ndim == 1:
        return lambda rows, _index: take_rows(plain, rows).tolist()
    # Torch does not join scalars of numpy's uint64, though it joins arrays of them.
    if dtype.char not in GATHERED_DTYPES or not dtype.isnative or (dtype.char in "LQ" and column.ndim == 1):
        raise NotGathered
    return lambda rows, _index: torch.from_numpy(take_rows(plain, rows))


def gather_columns(gathers: Iterable[ColumnGather], rows: Rows) -> list[Any]:
    """Returns the rows of several columns."""
    import torch

    index = torch.from_numpy(rows)
    return [gather(rows, index) for gather in gathers]


def _is_plain_tensor(column: Any) -> bool:
    """True for contiguous memory of the CPU without a history or a view of another sign: rows stack to a plain tensor."""
    import torch

    return (
        type(column) is torch.Tensor
        and column.layout is torch.strided
        and column.device.type == "cpu"
        and column.is_contiguous()
        and not (column.requires_grad or column.is_quantized or column.is_conj() or column.is_neg())
    )


# Data sets of others, by their exact type: a subclass may do as it likes in `__getitem__`.


def is_gathered(dataset: Any) -> bool:
    """True for numpy arrays, memory maps, tensors and torch's `TensorDataset`, and a torch `Subset` of one."""
    return _gatherer(dataset) is not None


def gather_dataset(dataset: Any, rows: Rows) -> Any:
    """Returns the batch of some rows of a data set for which `is_gathered` holds.

    Raises:
        NotGathered: this one needs the plain way.
    """
    gather = _gatherer(dataset)
    if gather is None:
        raise NotGathered
    return gather(dataset, rows)


def _gatherer(dataset: Any) -> Callable[[Any, Rows], Any] | None:
    kind = type(dataset)
    if kind is np.ndarray or kind is np.memmap:
        return _gather_array
    torch = sys.modules.get("torch")  # whoever holds its objects has loaded it
    if torch is None:
        return None
    if kind is torch.Tensor:
        return _gather_tensor
    if kind is torch.utils.data.TensorDataset:
        return _gather_tensor_dataset
    if kind is torch.utils.data.Subset and is_gathered(dataset.dataset):
        return _gather_subset
    return None


def _gather_array(array: Any, rows: Rows) -> Any:
    # A row of text is numpy's own kind of string here, and rows of other strides may stack to other strides.
    if array.dtype.kind in "US" or not (array.ndim == 1 or array.flags.c_contiguous):
        raise NotGathered
    return gather_columns([column_gather(array)], rows)[0]


def _gather_tensor(tensor: Any, rows: Rows) -> Any:
    return gather_columns([column_gather(tensor)], rows)[0]


def _gather_tensor_dataset(dataset: Any, rows: Rows) -> list[Any]:
    return gather_columns(map(column_gather, dataset.tensors), rows)  # a list, as collate makes of tuples


def _gather_subset(subset: Any, rows: Rows) -> Any:
    # Looked up in whatever holds them, at each call: it may be a long list, and it may change between epochs.
    inner = np.array([operator.index(subset.indices[row]) for row in rows.tolist()], dtype=np.int64)
    return gather_dataset(subset.dataset, inner)


def collates_by_torch(collate: Any) -> bool:
    """True if `collate` is torch's own `default_collate`, and nobody has added to its rules."""
    rules = sys.modules.get("torch.utils.data._utils.collate")
    return rules is not None and collate is rules.default_collate and has_torch_rules()


def has_torch_rules() -> bool:
    """True unless somebody has replaced or added to torch's table of collate functions, as its documentation allows."""
    import torch
    from torch.utils.data._utils import collate as rules

    known = {
        torch.Tensor: rules.collate_tensor_fn,
        np.ndarray: rules.collate_numpy_array_fn,
        (np.bool_, np.number, np.object_): rules.collate_numpy_scalar_fn,
        float: rules.collate_float_fn,
        int: rules.collate_int_fn,
        str: rules.collate_str_fn,
        bytes: rules.collate_str_fn,
    }
    return bool(rules.default_collate_fn_map == known)
