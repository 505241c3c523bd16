"""ArraySource: rows of numpy arrays, memory maps or torch tensors of equal length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.engine.source.columns import as_column, gather, is_same, portable, signature, spread_digest_input
from headrace.engine.source.gathering import ColumnGathers
from headrace.engine.source.manifest import Manifest
from headrace.errors import ConfigurationError, SampleId

__all__ = ["ArraySource"]


class ArraySource:
    """One record per row.

    The shape of a record follows the call: fields by name, or one mapping, give a dict; one positional array gives
    the row itself; several give a tuple. Rows are gathered, so they are copies: a stage that changes one in place
    does not change the data. A row of a 1-D numpy array is a scalar, of a 1-D tensor a 0-d tensor, of a 1-D array of
    strings a str.

    Args:
        arrays: One mapping of arrays, or arrays. Lists of numbers or strings are converted.
        ids: N unique identities: all strings, or all whole numbers. Default: the row number.
        fields: Arrays by field name.

    Raises:
        ConfigurationError: unequal lengths (names both fields), no array, no axis of rows, Python objects in an array,
            or ids that are repeated or not N.

    Memory maps stay on disk, and travel to spawned workers as a file name and not as bytes.

    >>> source = ArraySource(x=np.arange(6).reshape(3, 2), name=["a", "b", "c"])
    >>> source.read_many([2])
    [{'x': array([4, 5]), 'name': 'c'}]
    """

    runs_user_code = False
    gathers = True

    def __init__(self, *arrays: Any, ids: Sequence[SampleId] | None = None, **fields: Any) -> None:
        self.form, named = _form_and_fields(arrays, fields)
        self.arrays = {name: as_column(name, value) for name, value in named.items()}
        first, *others = self.arrays
        self.num_rows = len(self.arrays[first])
        for name in others:
            if len(self.arrays[name]) != self.num_rows:
                raise ConfigurationError(
                    f"arrays of unequal length: {first!r} has {self.num_rows:,} rows, "
                    f"{name!r} has {len(self.arrays[name]):,}",
                    do="give arrays with one row per sample, in the same order",
                )
        self.ids = None if ids is None else _packed_ids(ids, self.num_rows)
        self._gathers: ColumnGathers | None = None  # made when first used, and never pickled

    def __len__(self) -> int:
        return self.num_rows

    def read_many(self, indices: Sequence[int]) -> list[Any]:
        """Returns one record per index; IndexError for an index outside 0..N-1.

        Cost: one gather per field, and one small object per record.
        """
        rows = np.asarray(indices, dtype=np.int64)
        outside = rows[(rows < 0) | (rows >= self.num_rows)]
        if outside.size:
            raise IndexError(f"row {outside[0]:,} of an array with {self.num_rows:,} rows")
        columns = [gather(array, rows) for array in self.arrays.values()]
        if self.form == "row":
            return list(columns[0])
        if self.form == "tuple":
            return list(zip(*columns, strict=True))
        names = tuple(self.arrays)
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def gather(self, rows: npt.NDArray[np.int64]) -> Any:
        """Returns the batch of some rows at once, see `gathering.Gathering`. Cost: one gather per field."""
        if self._gathers is None:
            self._gathers = ColumnGathers(self.arrays.values(), tuple if self.form == "tuple" else list)
        columns = self._gathers(rows)
        if self.form == "row":
            return columns[0]
        if self.form == "dict":
            return dict(zip(self.arrays, columns, strict=True))
        return columns  # a list, as collate makes of tuples

    def sample_ids(self, rows: npt.NDArray[np.int64]) -> tuple[SampleId, ...]:
        """Returns the identities of some rows."""
        if isinstance(self.ids, Manifest):
            return tuple(self.ids[row] for row in rows.tolist())
        return tuple((rows if self.ids is None else self.ids[rows]).tolist())

    def sample_id(self, index: int) -> SampleId:
        """Returns the row number, or the identity that was given for it."""
        if self.ids is None:
            return int(index)
        return self.ids[index] if isinstance(self.ids, Manifest) else int(self.ids[index])

    def index_of(self, sample_id: SampleId) -> int:
        """Returns the row of an identity; ValueError if there is none."""
        if isinstance(self.ids, Manifest) and isinstance(sample_id, str):
            return self.ids.index(sample_id)
        if isinstance(self.ids, Manifest) or isinstance(sample_id, str):
            raise ValueError(f"no row has the id {sample_id!r}")  # noqa: TRY004 as list.index does
        rows = np.flatnonzero((np.arange(self.num_rows) if self.ids is None else self.ids) == sample_id)
        if not rows.size:
            raise ValueError(f"no row has the id {sample_id!r}")
        return int(rows[0])

    def locate(self, index: int) -> None:  # noqa: ARG002 the protocol's argument
        """Returns None: the id says where a row is."""
        return

    def fingerprint(self) -> str:
        """Returns a digest (XXH3-128) of names, types, shapes, ids, and the content of up to 64 rows per field.

        The rows are the first, the last and evenly spaced ones; of each at most 1 MiB counts. A change in other rows
        goes unseen; reading all would load a memory map from end to end.
        """
        digest = xxhash.xxh3_128(f"arrays-1 {self.form}".encode())
        parts: list[bytes] = []
        for name, array in self.arrays.items():
            parts += [name.encode(), signature(array).encode(), *spread_digest_input(array)]
        if isinstance(self.ids, Manifest):
            parts += self.ids.buffers()
        elif self.ids is not None:
            parts.append(self.ids.astype("<i8").tobytes())
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: portable(array) for name, array in self.arrays.items()}
        return {**self.__dict__, "arrays": arrays, "_gathers": None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArraySource):
            return NotImplemented
        return (
            (self.form, list(self.arrays), self.num_rows) == (other.form, list(other.arrays), other.num_rows)
            and all(self.sample_id(i) == other.sample_id(i) for i in range(self.num_rows))
            and all(is_same(array, other.arrays[name]) for name, array in self.arrays.items())
        )

    def __hash__(self) -> int:
        return hash((self.form, *self.arrays, self.num_rows))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} {signature(array)}" for name, array in self.arrays.items())
        return f"ArraySource({self.num_rows:,} rows: {fields})"


def _form_and_fields(arrays: tuple[Any, ...], fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Sorts out the three ways to call: (shape of a record: `dict`, `row` or `tuple`; arrays by name)."""
    if arrays and fields:
        raise ConfigurationError(
            "arrays are given both by place and by name", do="name all of them: arrays(image=images, label=labels)"
        )
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        fields, arrays = {str(name): value for name, value in arrays[0].items()}, ()
    if not arrays and not fields:
        raise ConfigurationError("no arrays are given", do="arrays(image=images, label=labels)")
    if fields:
        return "dict", fields
    return ("row" if len(arrays) == 1 else "tuple"), {str(place): array for place, array in enumerate(arrays)}


def _packed_ids(ids: Sequence[SampleId], num_rows: int) -> Manifest | npt.NDArray[np.int64]:
    """Checks that ids are N and unique, and packs them."""
    given = [i if isinstance(i, str) else int(i) for i in ids]
    if len(given) != num_rows:
        raise ConfigurationError(f"{len(given):,} ids are given for {num_rows:,} rows")
    if len({type(i) for i in given}) > 1:
        raise ConfigurationError("ids are partly strings and partly numbers", do="ids=[str(i) for i in ids]")
    seen: set[SampleId] = set()
    for row, sample_id in enumerate(given):
        if sample_id in seen:
            raise ConfigurationError(
                f"id {sample_id!r} is given twice: for row {given.index(sample_id):,} and for row {row:,}",
                why="everything said about a sample is said by its id",
            )
        seen.add(sample_id)
    if given and isinstance(given[0], str):
        return Manifest(str(sample_id) for sample_id in given)
    return np.array(given, dtype=np.int64)
