"""Whole batches at once: one gather per field instead of one object per sample, and what it may be used for.

A gather is a short cut of read and collate in one, for containers whose rows need no code of anybody's:

    read_many(rows) ──▶ default_collate        the plain way, which defines the batch
    gather(rows) ─────────────────────▶        the same batch: structure, dtypes, shapes, bytes

What is not known to give the same is refused by `NotGathered`, and goes the plain way. Torch is imported where used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from headrace.engine.source.columns import Column, is_tensor, take_rows
from headrace.engine.torch_rules import has_torch_rules

__all__ = ["ColumnGathers", "Gathering", "NotGathered", "Rows", "collates_by_torch"]

Rows = npt.NDArray[np.int64]
ColumnGather = Callable[[Rows, Any], Any]
"""Takes row numbers as an array and, if any column is a tensor, as a tensor."""

GATHERED_DTYPES = frozenset("?bBhHiIlLqQefdFD")
"""numpy's characters for bool, integers, float16 to float64 and complex64 and 128: what torch has as well."""

SMALL_ROW_BYTES = 512
"""Batches of such rows are small enough for the allocator to have warm memory for them."""


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


def column_gather(column: Column, text: type[list[str] | tuple[str, ...]] = list) -> ColumnGather:
    """Returns what gathers rows of one column as collate joins them: into a tensor, or a `text` of text.

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
        return lambda rows, _index: text(take_rows(plain, rows).tolist())
    # Torch does not join scalars of numpy's uint64, though it joins arrays of them.
    if dtype.char not in GATHERED_DTYPES or not dtype.isnative or (dtype.char in "LQ" and column.ndim == 1):
        raise NotGathered
    from_numpy = torch.from_numpy
    row_bytes = plain.nbytes // max(1, len(plain))
    if plain.flags.c_contiguous and row_bytes <= SMALL_ROW_BYTES:  # asked once, and not for each batch by `take_rows`
        take = plain.take
        return lambda rows, _index: from_numpy(take(rows, 0))
    return lambda rows, _index: from_numpy(take_rows(plain, rows))


class ColumnGathers:
    """Gathers rows of several columns.

    Args:
        columns: The columns.
        text: What rows of text become. Collate leaves them in the tuples that `zip` made, where samples are tuples.

    Raises:
        NotGathered: As `column_gather`.
    """

    def __init__(self, columns: Iterable[Column], text: type[list[str] | tuple[str, ...]] = list) -> None:
        import torch

        columns = list(columns)
        self._gathers = [column_gather(column, text) for column in columns]
        self._index_of = torch.from_numpy if any(map(is_tensor, columns)) else _no_index

    def __call__(self, rows: Rows) -> list[Any]:
        """Returns the rows of each column."""
        index = self._index_of(rows)
        return [gather(rows, index) for gather in self._gathers]


def _no_index(_rows: Rows) -> None:
    """Arrays take the row numbers as they are; a tensor of them costs a microsecond."""


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


def collates_by_torch(collate: Any) -> bool:
    """True if `collate` is torch's own `default_collate`, and nobody has added to its rules."""
    rules = sys.modules.get("torch.utils.data._utils.collate")
    return rules is not None and collate is rules.default_collate and has_torch_rules()
