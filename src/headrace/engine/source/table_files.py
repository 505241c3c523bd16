"""What people have as a table: one in memory, Parquet files, Arrow files; or a refusal that says what is wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace.errors import ConfigurationError, MissingExtra, SourceError, Where, nearest

__all__ = ["as_table", "chosen", "opened", "packed", "paths_of", "unpacked"]


def paths_of(table: Any) -> list[str]:
    """Returns the files that `table` names; none if it is no path and no list of paths."""
    if isinstance(table, (str, os.PathLike)):
        return [os.fspath(table)]
    if isinstance(table, (list, tuple)) and table and all(isinstance(part, (str, os.PathLike)) for part in table):
        return [os.fspath(part) for part in table]
    return []


def _arrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra(
            "pyarrow is needed for tables, and not installed", do="pip install 'headrace[arrow]'"
        ) from error
    return pa


def as_table(table: Any) -> Any:
    """Returns the `pyarrow.Table` of what is in memory.

    Raises:
        ConfigurationError: it is neither a table nor a batch of one.
        MissingExtra: pyarrow is not installed.
    """
    pa = _arrow()
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return table
    do = "headrace.table(pyarrow.Table.from_pandas(frame))" if hasattr(table, "iloc") else None
    raise ConfigurationError(
        f"a table is a pyarrow.Table, a RecordBatch, or a file; this is {type(table).__qualname__}", do=do
    )


def opened(paths: Sequence[str], columns: Sequence[str] | None) -> Any:
    """Returns the files as one `pyarrow.Table`, with at least the columns that are asked for.

    Raises:
        SourceError: one is missing or no table, or they have different columns.
        MissingExtra: pyarrow is not installed.
    """
    pa = _arrow()
    tables = [_opened_one(Path(path), columns) for path in paths]
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"the files do not make one table: {reason}", where=Where(path=paths[0])) from error


def _opened_one(path: Path, columns: Sequence[str] | None) -> Any:
    pa = _arrow()
    where = Where(path=str(path))
    if not path.is_file():
        raise SourceError(f"there is no such file: {path}", where=where)
    try:
        if path.suffix in {".parquet", ".pq"}:
            import pyarrow.parquet as pq

            _require_known(columns, pq.read_schema(path).names)
            return pq.read_table(path, columns=columns, memory_map=True)
        mapped = pa.memory_map(str(path))
        try:
            return pa.ipc.open_file(mapped).read_all()
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(mapped).read_all()
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"this is no table: {str(error).partition(chr(10))[0]}",
            where=where,
            do="Parquet ends in .parquet or .pq; everything else is opened as an Arrow file",
        ) from error


def chosen(table: Any, columns: Sequence[str] | None) -> Any:
    """Returns the table with the columns that are asked for, in that order.

    Raises:
        ConfigurationError: there is no such column, two of one name, or none at all.
    """
    _require_known(columns, table.column_names)
    names = table.column_names if columns is None else list(columns)
    twice = next((name for name in names if names.count(name) > 1 or table.column_names.count(name) > 1), None)
    if twice is not None or not names:
        text = "a table without columns has no records" if twice is None else f"there are two columns named {twice!r}"
        raise ConfigurationError(text, do="a record is a dict: give each column a name of its own")
    return table if columns is None else table.select(names)


def _require_known(columns: Sequence[str] | None, names: Sequence[str]) -> None:
    unknown = next((name for name in columns or () if name not in names), None)
    if unknown is not None:
        raise ConfigurationError(
            f"there is no column {unknown!r}{nearest(unknown, names)}", do=f"columns= some of {list(names)}"
        )


def packed(table: Any) -> Any:
    """Returns a table as a `pyarrow.Buffer`: of a slice only the rows that it has."""
    pa = _arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def unpacked(buffer: Any) -> Any:
    """Returns the table that `packed` has packed; its columns are views of the buffer."""
    return _arrow().ipc.open_stream(buffer).read_all()
