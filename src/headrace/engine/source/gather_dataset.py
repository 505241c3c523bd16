"""Data sets of others whose rows need no code of anybody's: known by their exact type, gathered a batch at once.

A subclass may do as it likes in `__getitem__`, so it is another type.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.engine.source.gathering import ColumnGathers, NotGathered, Rows
from headrace.engine.source.huggingface import gather_huggingface, is_huggingface

__all__ = ["gather_dataset", "is_gathered"]


def is_gathered(dataset: Any) -> bool:
    """True for numpy arrays, memory maps, tensors, torch's `TensorDataset`, Hugging Face's `Dataset`, and a `Subset` of one."""
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
    return gather_huggingface if is_huggingface(dataset) else None


def _gather_array(array: Any, rows: Rows) -> Any:
    # A row of text is numpy's own kind of string here, and rows of other strides may stack to other strides.
    if array.dtype.kind in "US" or not (array.ndim == 1 or array.flags.c_contiguous):
        raise NotGathered
    return ColumnGathers([array])(rows)[0]


def _gather_tensor(tensor: Any, rows: Rows) -> Any:
    return ColumnGathers([tensor])(rows)[0]


def _gather_tensor_dataset(dataset: Any, rows: Rows) -> list[Any]:
    return ColumnGathers(dataset.tensors)(rows)  # a list, as collate makes of tuples


def _gather_subset(subset: Any, rows: Rows) -> Any:
    # Looked up in whatever holds them, at each call: it may be a long list, and it may change between epochs.
    inner = np.array([operator.index(subset.indices[row]) for row in rows.tolist()], dtype=np.int64)
    return gather_dataset(subset.dataset, inner)
