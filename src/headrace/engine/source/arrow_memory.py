"""Rows of one Arrow column, gathered from the memory in which it lies: one `take`, however many chunks there are.

Arrow's own `take` joins all chunks of a column before it looks at one row. Here the chunks stay where they are: the
stretch of addresses from the first to the last of them is seen as one array, of which only their own items are touched.

    rows ──which chunk──▶ row + shift of that chunk ──take──▶ (B, ...) values, in the order of the rows

Columns with nulls, and types that are no numbers, text or lists of numbers, are refused by `NotGathered`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from headrace.engine.source.columns import take_rows
from headrace.engine.source.gathering import NotGathered

__all__ = ["Asked", "Values", "column_values"]

Ints = npt.NDArray[np.int64]
Array = Any
"""A `pyarrow.Array`: one chunk."""


class Cut:
    """Where the chunks of a column end."""

    def __init__(self, ends: tuple[int, ...]) -> None:
        self.ends = np.array(ends, dtype=np.int64)
        self.firsts = np.array([0, *ends[:-1]], dtype=np.int64)
        lengths = self.ends - self.firsts
        # Writers cut after a fixed number of rows, so that most often a division finds the chunk.
        is_regular = (lengths[:-1] == lengths[0]).all() and lengths[-1] <= lengths[0]
        self._length = int(lengths[0]) if is_regular else None

    def chunks(self, rows: Ints) -> Ints:
        """Returns the number of the chunk of each row."""
        return np.searchsorted(self.ends, rows, side="right") if self._length is None else rows // self._length


@functools.lru_cache(maxsize=64)
def _cut(ends: tuple[int, ...]) -> Cut:
    """Returns one object for all columns that are cut alike."""
    return Cut(ends)


class Asked:
    """The rows of one batch, and in which chunk each lies: looked up once for all columns that are cut alike."""

    def __init__(self, rows: Ints) -> None:
        self.rows = rows
        self._chunks: dict[Cut, Ints] = {}

    def chunks(self, cut: Cut) -> Ints:
        """Returns the number of the chunk of each row."""
        if cut not in self._chunks:
            self._chunks[cut] = cut.chunks(self.rows)
        return self._chunks[cut]


Values = Callable[[Asked], Any]
"""Returns B values of a column: an array of numbers (B, ...), a list of str or bytes, or a dict of these."""


def column_values(column: Any) -> Values:
    """Returns what gathers rows of a column.

    Args:
        column: A `pyarrow.ChunkedArray`. Numbers and bool; text and binary; lists of numbers, which must be of one
            length wherever they are gathered together, and fixed-size lists of them, also nested: (B, ...) arrays;
            dictionary-encoded values, as the values; structs of all these.

    Raises:
        NotGathered: another type, or a null anywhere, also inside a list.
    """
    import pyarrow as pa

    if column.null_count:
        raise NotGathered
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()  # one dictionary, and numbers into it
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        raise NotGathered
    return _values(column.type, chunks, _cut(tuple(np.cumsum([len(chunk) for chunk in chunks]).tolist())))


def _values(kind: Any, chunks: Sequence[Array], cut: Cut) -> Values:
    import pyarrow as pa

    is_ = pa.types
    if any(chunk.null_count for chunk in chunks):
        raise NotGathered
    if is_.is_boolean(kind):
        return _bools(chunks, cut)
    if is_.is_integer(kind) or is_.is_floating(kind):
        return _numbers(kind, chunks, cut)
    if is_.is_fixed_size_list(kind):
        return _fixed_lists(kind, chunks, cut)
    if is_.is_list(kind) or is_.is_large_list(kind):
        return _lists(kind, chunks, cut)
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_binary(kind) or is_.is_large_binary(kind):
        return _texts(kind, chunks, cut)
    if is_.is_dictionary(kind):
        return _dictionary(kind, chunks, cut)
    if is_.is_struct(kind) and kind.num_fields:
        fields = [kind.field(place) for place in range(kind.num_fields)]
        parts = [_values(f.type, [chunk.field(place) for chunk in chunks], cut) for place, f in enumerate(fields)]
        names = [field.name for field in fields]
        return lambda asked: dict(zip(names, [part(asked) for part in parts], strict=True))
    raise NotGathered


class _Stretch:
    """The addresses from the first to the last of some pieces of memory, as one read-only array.

    Args:
        pieces: Of each chunk what holds its memory, and the address of its first item.
        sizes: Number of items of each.
        dtype: Of the items.
        cut: Where the chunks end, in rows.
        width: Items of one row.

    numpy sees addresses between the pieces that may hold anything, or nothing: whoever indexes `items` keeps to
    places that belong to a piece, as `places` gives them.
    """

    def __init__(
        self,
        keep: Any,
        addresses: Sequence[int],
        sizes: Sequence[int],
        dtype: npt.DTypeLike,
        cut: Cut,
        width: int = 1,
    ) -> None:
        kind = np.dtype(dtype)
        used = [
            (address, address + size * kind.itemsize) for address, size in zip(addresses, sizes, strict=True) if size
        ]
        begin, end = (min(a for a, _ in used), max(b for _, b in used)) if used else (0, 0)
        if any((address - begin) % kind.itemsize for address, _ in used) or begin % kind.alignment:
            raise NotGathered
        self._keep = keep
        self.__array_interface__ = {
            "version": 3,
            "data": (begin, True),
            "shape": ((end - begin) // kind.itemsize,),
            "typestr": kind.str,
        }
        self.items = np.asarray(self) if used else np.empty(0, kind)  # numpy keeps this object, and it the memory
        self.cut, self.width = cut, width
        places = [
            (address - begin) // kind.itemsize if size else 0 for address, size in zip(addresses, sizes, strict=True)
        ]
        self.origins = np.array(places, dtype=np.int64)
        """Place of each chunk's first item."""
        self._shifts = self.origins - width * cut.firsts

    def places(self, asked: Asked) -> Ints:
        """Returns the place of the first item of each row."""
        begins = asked.rows if self.width == 1 else asked.rows * self.width
        if len(self._shifts) == 1:
            return begins + self._shifts[0] if self._shifts[0] else begins
        return begins + self._shifts[asked.chunks(self.cut)]

    def windows(self, length: int) -> npt.NDArray[Any]:
        """Returns every run of `length` items, as a view: number s begins at item s."""
        size = self.items.itemsize
        return as_strided(self.items, (len(self.items) - length + 1, length), (size, size), writeable=False)


def _numbers(kind: Any, chunks: Sequence[Array], cut: Cut) -> Values:
    stretch = _stretch_of_numbers(kind, chunks, [len(chunk) for chunk in chunks], cut)
    return lambda asked: stretch.items.take(stretch.places(asked))


def _stretch_of_numbers(kind: Any, chunks: Sequence[Array], sizes: Sequence[int], cut: Cut, width: int = 1) -> _Stretch:
    dtype = np.dtype(kind.to_pandas_dtype())
    addresses = [_address(chunk.buffers()[1], chunk.offset * dtype.itemsize) for chunk in chunks]
    return _Stretch(chunks, addresses, sizes, dtype, cut, width)


def _address(buffer: Any, offset_bytes: int) -> int:
    return 0 if buffer is None else buffer.address + offset_bytes


def _bools(chunks: Sequence[Array], cut: Cut) -> Values:
    # Eight to a byte: the place of a row is the place of its byte, and the number of its bit.
    buffers = [chunk.buffers()[1] for chunk in chunks]
    stretch = _Stretch(chunks, [buffer.address for buffer in buffers], [b.size for b in buffers], np.uint8, cut)
    shifts = 8 * stretch.origins + np.array([chunk.offset for chunk in chunks]) - cut.firsts

    def values(asked: Asked) -> Any:
        bits = asked.rows + shifts[asked.chunks(cut)]
        return (stretch.items.take(bits >> 3) >> (bits & 7).astype(np.uint8)) & 1 == 1

    return values


def _fixed_lists(kind: Any, chunks: Sequence[Array], cut: Cut) -> Values:
    shape: list[int] = []
    inner = list(chunks)
    firsts = [chunk.offset for chunk in chunks]
    while _is_fixed_list(kind):
        if any(chunk.null_count for chunk in inner):
            raise NotGathered
        shape.append(kind.list_size)
        inner = [chunk.values for chunk in inner]
        firsts = [first * kind.list_size for first in firsts]
        kind = kind.value_type
        # The parent counts its items from the child's own beginning, which may itself lie inside a buffer.
        if _is_fixed_list(kind):
            firsts = [first + chunk.offset for first, chunk in zip(firsts, inner, strict=True)]
    width = math.prod(shape)
    lengths = [len(chunk) for chunk in chunks]
    used = [chunk.slice(first, length * width) for chunk, first, length in zip(inner, firsts, lengths, strict=True)]
    _require_numbers(kind, used)
    if not width:
        raise NotGathered
    stretch = _stretch_of_numbers(kind, used, [length * width for length in lengths], cut, width)
    if len(chunks) == 1:
        plain = stretch.items.reshape(-1, *shape)
        return lambda asked: take_rows(plain, asked.rows)
    windows = stretch.windows(width)
    return lambda asked: np.ascontiguousarray(windows[stretch.places(asked)]).reshape(-1, *shape)


def _is_fixed_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(kind))


def _require_numbers(kind: Any, chunks: Sequence[Array]) -> None:
    import pyarrow as pa

    # Bits cannot be seen as an array, so lists of bool are read one by one.
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or any(chunk.null_count for chunk in chunks):
        raise NotGathered


def _spans_of(chunks: Sequence[Array], cut: Cut, is_large: bool) -> Callable[[Asked], tuple[Ints, Ints]]:
    """Returns what gives begin and end of each row, as the chunk of the row counts them."""
    dtype = np.dtype(np.int64 if is_large else np.int32)
    addresses = [_address(chunk.buffers()[1], chunk.offset * dtype.itemsize) for chunk in chunks]
    stretch = _Stretch(chunks, addresses, [len(chunk) + 1 for chunk in chunks], dtype, cut)

    def spans(asked: Asked) -> tuple[Ints, Ints]:
        places = stretch.places(asked)
        return stretch.items.take(places).astype(np.int64), stretch.items.take(places + 1).astype(np.int64)

    return spans


def _lists(kind: Any, chunks: Sequence[Array], cut: Cut) -> Values:
    inner = [chunk.values for chunk in chunks]
    _require_numbers(kind.value_type, inner)
    spans = _spans_of(chunks, cut, str(kind).startswith("large"))
    stretch = _stretch_of_numbers(kind.value_type, inner, [len(chunk) for chunk in inner], cut)

    def values(asked: Asked) -> Any:
        begins, stops = spans(asked)
        length = int(stops[0] - begins[0])
        if not length or (stops - begins != length).any():
            raise NotGathered  # rows of several lengths do not stack
        origins = stretch.origins[asked.chunks(cut)] if len(chunks) > 1 else stretch.origins[0]
        return np.ascontiguousarray(stretch.windows(length)[begins + origins])

    return values


def _texts(kind: Any, chunks: Sequence[Array], cut: Cut) -> Values:
    is_text = str(kind).endswith("string")
    spans = _spans_of(chunks, cut, str(kind).startswith("large"))
    buffers = [chunk.buffers()[2] for chunk in chunks]
    sizes = [0 if buffer is None else buffer.size for buffer in buffers]
    stretch = _Stretch(chunks, [_address(buffer, 0) for buffer in buffers], sizes, np.uint8, cut)
    data = memoryview(stretch.items.data)  # one object per row is made anyway: here from its bytes

    def values(asked: Asked) -> list[Any]:
        begins, stops = spans(asked)
        origins = stretch.origins[asked.chunks(cut)] if len(chunks) > 1 else stretch.origins[0]
        pairs = zip((begins + origins).tolist(), (stops + origins).tolist(), strict=True)
        if is_text:
            return [str(data[begin:stop], "utf-8") for begin, stop in pairs]
        return [bytes(data[begin:stop]) for begin, stop in pairs]

    return values


def _dictionary(kind: Any, chunks: Sequence[Array], cut: Cut) -> Values:
    words = chunks[0].dictionary
    if any(not chunk.dictionary.equals(words) for chunk in chunks[1:]):
        raise NotGathered
    places = _numbers(kind.index_type, [chunk.indices for chunk in chunks], cut)
    inner = _values(kind.value_type, [words], _cut((len(words),)))
    return lambda asked: inner(Asked(places(asked).astype(np.int64)))
