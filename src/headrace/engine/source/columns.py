"""One column of rows: a numpy array, a memory map or a torch tensor, behind a few small functions.

Tensors are recognised by their own methods, so that torch is not imported for people who have none of its tensors.
"""

from __future__ import annotations

import mmap
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from headrace.engine.batch_memory import MIN_BYTES, batch_memory
from headrace.errors import ConfigurationError

__all__ = ["as_column", "gather", "is_same", "portable", "signature", "spread_digest_input", "take_rows"]

SAMPLED_ROWS = 64
"""Rows whose content goes into a fingerprint: the first, the last, and evenly spaced ones between."""

SAMPLED_BYTES = 1 << 20
"""Bytes of one such row that count; so at most 64 MiB are read per column."""

Column = Any
"""numpy array, numpy memory map, or torch tensor; axis 0 runs over the rows."""


def is_tensor(value: Any) -> bool:
    """True for a torch tensor."""
    return hasattr(value, "index_select") and hasattr(value, "numpy")


def as_column(name: str, value: Any) -> Column:
    """Returns the value as a column; arrays, maps and tensors as they are, lists of numbers or strings converted.

    Raises:
        ConfigurationError: no axis for the rows, rows of unequal length, or Python objects.
    """
    if not (is_tensor(value) or isinstance(value, np.ndarray)):
        try:
            value = np.asarray(value)
        except ValueError as error:  # rows of unequal length
            raise ConfigurationError(
                f"field {name!r} cannot become an array: {error}",
                do="pad the rows to one length, or write a data set with __len__ and __getitem__",
            ) from error
    if value.ndim == 0:
        raise ConfigurationError(f"field {name!r} has no rows: it is a single value of type {type(value).__name__}")
    if not is_tensor(value) and value.dtype.hasobject:
        raise ConfigurationError(
            f"field {name!r} holds Python objects (dtype {value.dtype}), not numbers or strings",
            why="their reference counts are written in every worker, which copies the memory that workers should share",
            do=f"np.asarray({name}, dtype=str)    # or float, int, ...; or a data set with __len__ and __getitem__",
        )
    return value


def gather(column: Column, rows: npt.NDArray[np.int64]) -> Any:
    """Returns the rows as one fresh array, tensor, or list of str; iterating over it gives the records."""
    if is_tensor(column):
        import torch

        return column[torch.from_numpy(rows)]
    found = take_rows(np.asarray(column), rows)
    # A numpy string scalar is no str for collate rules; a Python string is one everywhere.
    return found.tolist() if found.ndim == 1 and found.dtype.kind in "US" else found


def take_rows(array: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Returns rows of a numpy array as an array of their own; large ones in memory that was a batch before.

    `take` is the faster one, but of an array with gaps or overlaps (windows over one run of memory) it first makes a
    copy as a whole, for every call.
    """
    if not array.flags.c_contiguous:
        return np.ascontiguousarray(array[rows])
    num_bytes = len(rows) * (array.nbytes // max(1, len(array)))
    is_number = array.dtype.kind in "biufc" and array.dtype.isnative
    # "clip" fills the memory without a buffer in between, but would take a row outside for the nearest one.
    if num_bytes < MIN_BYTES or not is_number or rows.min() < 0 or rows.max() >= len(array):
        return array.take(rows, 0)
    return array.take(rows, 0, batch_memory((len(rows), *array.shape[1:]), array.dtype), "clip")


def signature(column: Column) -> str:
    """Returns dtype and shape as text."""
    return f"{str(column.dtype).removeprefix('torch.')}{list(column.shape)}"


def spread_digest_input(column: Column) -> list[bytes]:
    """Returns the bytes of a bounded sample of rows: 64 of them, at most 1 MiB of each."""
    num_rows = len(column)
    rows = np.unique(np.linspace(0, max(num_rows - 1, 0), min(num_rows, SAMPLED_ROWS)).astype(np.int64))
    return [_row_bytes(column[int(row)]) for row in rows]


def _row_bytes(row: Any) -> bytes:
    if is_tensor(row):
        import torch

        # Through bytes, because numpy has no bfloat16.
        row = row.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    flat = np.ascontiguousarray(row).reshape(-1)
    return flat[: max(1, SAMPLED_BYTES // max(1, flat.itemsize))].tobytes()


def is_same(a: Column, b: Column) -> bool:
    """True if both hold the same values of the same type; NaN equals NaN."""
    if a is b:
        return True
    if is_tensor(a) != is_tensor(b) or signature(a) != signature(b):
        return False
    if is_tensor(a):
        return bool(((a == b) | ((a != a) & (b != b))).all())  # noqa: PLR0124 only NaN differs from itself
    return bool(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc"))


def portable(column: Column) -> Column:
    """Returns what to pickle for a column: for a whole memory map its file and place, else the column itself.

    numpy pickles a memory map as all of its bytes. A slice of a map does not know its own offset, and a
    copy-on-write map may hold changes that its file lacks, so these stay as they are.
    """
    base: Any = column.base if isinstance(column, np.memmap) else None
    if isinstance(base, mmap.mmap) and column.filename is not None and column.mode != "c":
        order = "F" if column.flags.f_contiguous and not column.flags.c_contiguous else "C"
        return _MappedFile((str(column.filename), column.dtype, column.offset, column.shape, order))
    return column


class _MappedFile(tuple[Any, ...]):
    """Where a memory map lies; pickles as itself and comes back as the map, read-only."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _map_again, tuple(self)


def _map_again(filename: str, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], order: str) -> Column:
    return np.memmap(filename, dtype=dtype, mode="r", offset=offset, shape=shape, order=cast("Any", order))
