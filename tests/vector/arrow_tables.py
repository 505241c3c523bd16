"""Arrow columns of every kind, cut into chunks and sliced in many ways, and what a row of them is by the oracle."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
from vector_containers import array as numbers
from vector_containers import text

NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
KINDS = (
    *NUMBERS,
    *("text", "large text", "binary", "empty text", "words", "large words", "word numbers"),
    *(
        "fixed list",
        "fixed list of fixed lists",
        "list of one length",
        "large list of one length",
        "lists of many lengths",
    ),
    *("fixed list of bool", "empty lists", "fixed list of none", "struct", "struct of lists"),
    *("nulls", "text with nulls", "list with a null inside", "timestamp", "date", "decimal", "list of text", "null"),
    *("list of lists", "struct with a null"),
)


def arrow_array(kind, rng, n):
    """Returns n values of a kind as one `pyarrow.Array`."""
    if kind in NUMBERS:
        return pa.array(numbers(rng, kind, n, ()))
    values = numbers(rng, "float32", n, ())
    many = numbers(rng, "int16", n * 6, ())
    match kind:
        case "text" | "large text":
            return pa.array(text(n), pa.string() if kind == "text" else pa.large_string())
        case "binary":
            return pa.array([bytes([row % 256]) * (row % 4) for row in range(n)])
        case "empty text":
            return pa.array([""] * n)
        case "words" | "large words":
            kind_ = pa.string() if kind == "words" else pa.large_string()
            return pa.array([f"w{number}" for number in rng.integers(0, 3, n)], kind_).dictionary_encode()
        case "word numbers":
            return pa.array(rng.integers(0, 3, n)).dictionary_encode()
        case "fixed list":
            return pa.FixedSizeListArray.from_arrays(pa.array(many[: 3 * n]), 3)
        case "fixed list of fixed lists":
            inner = pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate([many[:2], many])), 2).slice(1)
            return pa.FixedSizeListArray.from_arrays(inner, 3)
        case "list of one length" | "large list of one length":
            make = pa.LargeListArray if kind.startswith("large") else pa.ListArray
            return make.from_arrays(np.arange(0, 2 * n + 1, 2) + 2, pa.array(many[: 2 * n + 2]).slice(0))
        case "lists of many lengths":
            return pa.array([list(range(row % 4)) for row in range(n)], pa.list_(pa.int32()))
        case "fixed list of bool":
            return pa.FixedSizeListArray.from_arrays(pa.array(many[: 2 * n] > 0), 2)
        case "empty lists":
            return pa.array([[]] * n, pa.list_(pa.int8()))
        case "fixed list of none":
            return pa.array([[]] * n, pa.list_(pa.int8(), 0))
        case "struct":
            return pa.array([{"a": row, "b": {"c": f"n{row}", "d": row / 2}} for row in range(n)])
        case "struct of lists":
            return pa.array([{"a": [row, 1.5]} for row in range(n)], pa.struct([("a", pa.list_(pa.float32(), 2))]))
        case "nulls":
            return pa.array([None if row % 3 == 1 else float(row) for row in range(n)], pa.float32())
        case "text with nulls":
            return pa.array([None if row % 3 == 1 else "a" for row in range(n)], pa.string())
        case "list with a null inside":
            return pa.array([[row, None if row % 5 == 4 else 1] for row in range(n)], pa.list_(pa.int64()))
        case "timestamp":
            return pa.array([dt.datetime(2020, 1, 1, row % 24, tzinfo=dt.UTC) for row in range(n)])
        case "date":
            return pa.array([dt.date(2020, 1, 1 + row % 28) for row in range(n)])
        case "decimal":
            return pa.array([decimal.Decimal(f"{row}.25") for row in range(n)], pa.decimal128(9, 2))
        case "list of text":
            return pa.array([["a", f"b{row}"] for row in range(n)])
        case "null":
            return pa.nulls(n)
        case "list of lists":
            return pa.array([[[row, 1], [2]] for row in range(n)])
        case "struct with a null":
            return pa.array([None if row % 4 == 3 else {"a": values[row].item()} for row in range(n)])
    raise AssertionError(kind)


def column(kind, rng, num_rows, num_chunks):
    """Returns a chunked array of `num_rows`, each chunk a slice of something longer, empty ones among them."""
    cuts = np.sort(rng.integers(0, num_rows + 1, num_chunks - 1))
    lengths = np.diff([0, *cuts, num_rows]).tolist()
    chunks = []
    for length in lengths:
        before = int(rng.integers(0, 4))
        chunks.append(arrow_array(kind, rng, before + length + 2).slice(before, length))
    return pa.chunked_array(chunks)


def expected_value(value, kind):
    """What a record holds of a Python value that Arrow gave, by its type: the oracle, one value at a time."""
    if value is None:
        return None
    if pa.types.is_dictionary(kind):
        return expected_value(value, kind.value_type)
    if is_number(kind):
        return np.array([value], dtype=kind.to_pandas_dtype())[0]
    if pa.types.is_struct(kind):
        return {field.name: expected_value(value[field.name], field.type) for field in kind}
    if is_list(kind):
        inner, has_none = kind.value_type, any(part is None for part in value)
        while pa.types.is_fixed_size_list(inner):
            inner = inner.value_type
        if is_number(inner) and not has_none:
            shape = [len(value)]
            deeper = kind.value_type
            while pa.types.is_fixed_size_list(deeper):
                shape.append(deeper.list_size)
                deeper = deeper.value_type
            return np.array(value, dtype=inner.to_pandas_dtype()).reshape(shape)
        return [expected_value(part, kind.value_type) for part in value]
    return value


def is_number(kind):
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def is_list(kind):
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


class Rows:
    """The table as anybody's map-style data set: one row at a time, through Python values."""

    def __init__(self, table):
        self.table = table

    def __len__(self):
        return self.table.num_rows

    def __getitem__(self, row):
        if not 0 <= row < len(self):
            raise IndexError(row)
        found = self.table.slice(row, 1)
        return {f.name: expected_value(found[f.name].to_pylist()[0], f.type) for f in self.table.schema}
