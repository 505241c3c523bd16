"""One row of an Arrow column as a record holds it: the plain twin of `arrow_memory`, for every type there is."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["record_value"]


def record_value(array: Any, place: int) -> Any:
    """Returns one value of a `pyarrow.Array`.

    Numbers and bool are numpy scalars of the column's type, lists of numbers (and fixed-size lists of these, nested)
    numpy arrays, structs dicts, dictionary-encoded values the values; null is None, also inside a list, which then is
    a list of Python values. Everything else is what Arrow makes of it in Python: str, bytes, datetime, Decimal, ...
    """
    import pyarrow as pa

    kind = array.type
    scalar = array[place]
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(kind):
        return record_value(array.dictionary, scalar.index.as_py())
    if _is_number(kind):
        return _numpy_type(kind)(scalar.as_py())
    if pa.types.is_struct(kind):
        # Not through the scalar, which does not tell a number's type from another's.
        return {kind.field(k).name: record_value(array.field(k), place) for k in range(kind.num_fields)}
    if _is_list(kind):
        return _list_value(scalar.values)
    return scalar.as_py()


def _list_value(values: Any) -> Any:
    """Returns the values of one list: an array if they are numbers, in any depth of fixed-size lists."""
    import pyarrow as pa

    shape, inner = [len(values)], values
    while pa.types.is_fixed_size_list(inner.type) and not inner.null_count:
        shape.append(inner.type.list_size)
        inner = inner.flatten()
    if not _is_number(inner.type) or inner.null_count:
        return [record_value(values, place) for place in range(len(values))]
    plain = inner.to_numpy(zero_copy_only=False)
    return plain.astype(_numpy_type(inner.type)).reshape(shape)  # a copy, which may be written to


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _numpy_type(kind: Any) -> Any:
    return np.dtype(kind.to_pandas_dtype()).type
