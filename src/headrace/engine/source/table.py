"""TableSource: rows of an Arrow table, in memory, in a mapped Arrow file, or read from Parquet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.engine.source.arrow_memory import Asked, Values, column_values
from headrace.engine.source.arrow_records import record_value
from headrace.engine.source.gathering import GATHERED_DTYPES, NotGathered
from headrace.engine.source.numbered import NumberedRows
from headrace.engine.source.table_files import as_table, chosen, opened, packed, paths_of, unpacked

__all__ = ["TableSource", "is_table"]

SAMPLED_ROWS = 64
"""Rows that go into a fingerprint: the first, the last, and evenly spaced ones between."""

SAMPLED_BYTES = 64 << 20
"""Bytes of these rows at most, as far as rows are of one size; then there are fewer of them."""


class TableSource(NumberedRows):
    """Record i is row i, a dict of its columns; its id is its number i.

    Args:
        table: A `pyarrow.Table` or `RecordBatch`, or one file or several: Parquet (`.parquet`, `.pq`; read into memory,
            the chosen columns only) or Arrow (`.arrow`, `.feather`; mapped, never read whole if it is not compressed).
        columns: Names of the columns to take, in that order. Default: all.

    Numbers are numpy scalars of the column's type, lists of numbers numpy arrays; see `arrow_records`.

    Raises:
        MissingExtra: pyarrow is not installed.
        SourceError: there is no such file, or it is not one of these.
        ConfigurationError: there is no such column, or two of one name.

    Tables in memory are shared with workers that are forked. Files travel to spawned workers as their names: Arrow files
    are mapped again at no cost, Parquet files are read again by each.
    """

    runs_user_code = False
    gathers = True

    def __init__(self, table: Any, *, columns: Sequence[str] | None = None) -> None:
        self.paths = paths_of(table)
        self.columns = None if columns is None else [str(name) for name in columns]
        self._take_in(opened(self.paths, self.columns) if self.paths else as_table(table))

    def _take_in(self, table: Any) -> None:
        self.table = chosen(table, self.columns)
        self._ends = {name: _ends(self.table[name]) for name in self.table.column_names}
        self._values: dict[str, Values | None] | None = None  # made when first used, and never pickled

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def read_many(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Returns one dict per index; IndexError for an index outside 0..N-1.

        Cost: one gather per column of numbers or text, else one look-up per value.
        """
        rows = np.asarray(indices, dtype=np.int64)
        outside = rows[(rows < 0) | (rows >= len(self))]
        if outside.size:
            raise IndexError(f"row {outside[0]:,} of a table with {len(self):,} rows")
        if not rows.size:
            return []
        asked = Asked(rows)
        columns = [self._column(name, asked) for name in self.table.column_names]
        return [dict(zip(self.table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]

    def gather(self, rows: npt.NDArray[np.int64]) -> Any:
        """Returns the batch of some rows at once, see `gathering.Gathering`. Cost: one gather per column."""
        gathers = self._all_values()
        if None in gathers.values():
            raise NotGathered
        asked = Asked(rows)
        return {name: _joined(values(asked)) for name, values in gathers.items() if values is not None}

    def _all_values(self) -> dict[str, Values | None]:
        if self._values is None:
            self._values = {name: _gather_of(self.table[name]) for name in self.table.column_names}
        return self._values

    def _column(self, name: str, asked: Asked) -> Any:
        """Returns the values of one column for some rows: at once, or one by one."""
        values = self._all_values()[name]
        if values is not None:
            try:
                return _split(values(asked))
            except NotGathered:
                pass  # lists of several lengths
        column, ends = self.table[name], self._ends[name]
        chunks = np.searchsorted(np.array(ends), asked.rows, side="right").tolist()
        firsts = [0, *ends]
        return [
            record_value(column.chunk(chunk), row - firsts[chunk])
            for row, chunk in zip(asked.rows.tolist(), chunks, strict=True)
        ]

    def locate(self, index: int) -> str | None:
        """Returns the file and the row, where there is one file; None for a table in memory."""
        if not self.paths:
            return None
        return f"{self.paths[0]}, row {int(index):,}" if len(self.paths) == 1 else f"{len(self.paths)} files"

    def fingerprint(self) -> str:
        """Returns a digest (XXH3-128) of schema, number of rows, and up to 64 of them, 64 MiB at most.

        A change in other rows goes unseen; reading all would load a mapped file from end to end.
        """
        digest = xxhash.xxh3_128(f"table-1 {len(self)}".encode())
        row_bytes = self.table.nbytes / max(1, len(self))
        count = min(len(self), SAMPLED_ROWS, max(2, int(SAMPLED_BYTES / max(1.0, row_bytes))))
        rows = np.unique(np.linspace(0, max(len(self) - 1, 0), count).astype(np.int64))
        for field in self.table.schema:
            digest.update(f"|{field.name} {field.type}".encode())
            for piece in _bytes_of(self.table[field.name], rows):
                digest.update(piece)
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": self.paths, "columns": self.columns, "table": None if self.paths else packed(self.table)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.paths, self.columns = state["paths"], state["columns"]
        self._take_in(opened(self.paths, self.columns) if self.paths else unpacked(state["table"]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableSource):
            return NotImplemented
        return self.table is other.table or bool(self.table.equals(other.table))

    def __hash__(self) -> int:
        return hash((TableSource, len(self), *self.table.column_names))

    def __repr__(self) -> str:
        place = (
            f"{', '.join(self.paths)}, " if len(self.paths) == 1 else f"{len(self.paths)} files, " * bool(self.paths)
        )
        fields = ", ".join(f"{field.name} {field.type}" for field in self.table.schema)
        return f"TableSource({place}{len(self):,} rows: {fields})"


def is_table(data: Any) -> bool:
    """True for a `pyarrow.Table` or `RecordBatch`, without importing pyarrow."""
    pa = sys.modules.get("pyarrow")  # whoever holds one has loaded it
    return pa is not None and isinstance(data, (pa.Table, pa.RecordBatch))


def _gather_of(column: Any) -> Values | None:
    try:
        return column_values(column)
    except NotGathered:
        return None


def _joined(values: Any) -> Any:
    """Returns gathered values as torch's rules join them."""
    import torch

    if isinstance(values, dict):
        return {name: _joined(part) for name, part in values.items()}
    if isinstance(values, list):
        return values
    # Torch does not join scalars of numpy's uint64, though it joins arrays of them.
    if values.dtype.char not in GATHERED_DTYPES or (values.dtype.char in "LQ" and values.ndim == 1):
        raise NotGathered
    return torch.from_numpy(values)


def _split(values: Any) -> Any:
    """Returns gathered values as one per row."""
    if isinstance(values, dict):
        return [dict(zip(values, row, strict=True)) for row in zip(*map(_split, values.values()), strict=True)]
    return values


def _ends(column: Any) -> list[int]:
    return [int(end) for end in np.cumsum([len(chunk) for chunk in column.chunks])]


def _bytes_of(column: Any, rows: npt.NDArray[np.int64]) -> list[bytes]:
    """Returns bytes that say what some rows of a column hold, however the column is cut into chunks."""
    import pyarrow as pa

    ends = np.array(_ends(column), dtype=np.int64)
    pieces: list[bytes] = []
    for row in rows.tolist():
        chunk = int(np.searchsorted(ends, row, side="right"))
        place = row - (int(ends[chunk - 1]) if chunk else 0)
        one = pa.concat_arrays([column.chunk(chunk).slice(place, 1)])  # only the row itself, without what surrounds it
        if pa.types.is_dictionary(one.type):
            one = one.dictionary_decode()
        pieces.append(pa.record_batch([one], ["x"]).serialize().to_pybytes())
    return pieces
