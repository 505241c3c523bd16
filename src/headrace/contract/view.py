"""Looks at one sample without changing it: named fields, and what each of them is.

Used by the contract (infer, check) and by the doctor (evidence). Holds no payloads: shapes, dtypes, ranges, counts.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["SOLE_FIELD", "ValueView", "as_array", "flatten", "view_form", "view_sample", "view_value"]

SOLE_FIELD = "sample"
"""Name of the field of a sample that has no parts: a bare tensor, array or number."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ValueView:
    """What one field of one sample is."""

    field: str
    """`image`, `boxes.xy`, `0`: keys, names and places joined by dots; `sample` for a sample without parts."""
    kind: str
    """tensor (torch), array (numpy), number, boolean, string, bytes, none, or the class name of anything else."""
    dtype: str | None = None
    """`uint8`, `float32`, `int64`, ...; for numbers `int` or `float`; None for what has none."""
    shape: tuple[int, ...] | None = None
    """Shape; () for numbers and 0-d tensors; (length,) for strings and bytes; None for what has none."""
    minimum: float | None = None
    """Smallest finite value; None: not numeric, empty, or all values non-finite."""
    maximum: float | None = None
    """Largest finite value; None as for `minimum`."""
    num_nan: int = 0
    """Values that are NaN."""
    num_inf: int = 0
    """Values that are infinite, of either sign."""
    is_whole: bool | None = None
    """True if every finite value is a whole number; None if not numeric."""


def flatten(sample: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (field name, value) for each leaf of a sample, in the sample's own order.

    Mappings, named tuples, dataclasses, lists and tuples are opened. A list of plain numbers is one leaf (a
    sequence such as token ids), not one field per number. Strings and bytes are leaves; so is an empty container.
    """
    items = _parts(sample)
    if items is None:
        yield prefix or SOLE_FIELD, sample
        return
    for name, value in items:
        yield from flatten(value, f"{prefix}.{name}" if prefix else str(name))


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    """The named parts of a container; None if the value is a leaf."""
    if isinstance(value, Mapping):
        return [(str(name), part) for name, part in value.items()] or None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)] or None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, (list, tuple)):
        if not value or all(isinstance(part, numbers.Number) and not isinstance(part, bool) for part in value):
            # (image, label) pairs are opened by the caller because the image is no number; [5, 7, 2] is one sequence.
            return None if not value or isinstance(value, list) else [(str(i), part) for i, part in enumerate(value)]
        return [(str(i), part) for i, part in enumerate(value)]
    return None


def as_array(value: Any) -> npt.NDArray[Any] | None:
    """Returns a numeric leaf as a numpy array without copying where possible; None if it is not numeric.

    Tensors are detached and moved to the CPU; dtypes that numpy lacks (bfloat16, float8) are widened to float32.
    """
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a torch tensor, without importing torch
        tensor = value.detach().cpu()
        if str(tensor.layout) != "torch.strided" or tensor.is_nested or tensor.is_quantized:
            return None
        if str(tensor.dtype).startswith(("torch.bfloat16", "torch.float8")):
            tensor = tensor.float()
        array = np.asarray(tensor.resolve_conj().resolve_neg().numpy())
    elif isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        array = np.asarray(value)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value):
        if not all(isinstance(part, numbers.Real) for part in value):
            return None
        array = np.asarray(value)
    else:
        return None
    return array if array.dtype.kind in "biuf" else None


def view_form(field: str, value: Any) -> ValueView:
    """Returns kind, dtype and shape of one leaf without looking at its values. Cost: none that grows with the value."""
    if value is None:
        return ValueView(field=field, kind="none")
    if isinstance(value, str):
        return ValueView(field=field, kind="string", shape=(len(value),))
    if isinstance(value, (bytes, bytearray)):
        return ValueView(field=field, kind="bytes", shape=(len(value),))
    kind, dtype = _kind_and_dtype(value)
    if kind in {"number", "boolean"}:
        return ValueView(field=field, kind=kind, dtype=dtype, shape=())
    if kind == "sequence":
        return ValueView(field=field, kind=kind, dtype=dtype, shape=(len(value),))
    if kind == "tensor" and value.is_nested:  # has no shape, and torch raises instead of saying so
        return ValueView(field=field, kind=kind, dtype=dtype)
    shape = getattr(value, "shape", None)
    return ValueView(field=field, kind=kind, dtype=dtype, shape=tuple(shape) if isinstance(shape, tuple) else None)


def view_value(field: str, value: Any) -> ValueView:
    """Returns what one leaf is. Cost: one pass over a numeric leaf."""
    form = view_form(field, value)
    array = as_array(value)
    if array is None:
        return form
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    has_values = finite.size > 0
    return dataclasses.replace(
        form,
        shape=tuple(array.shape),
        minimum=float(finite.min()) if has_values else None,
        maximum=float(finite.max()) if has_values else None,
        num_nan=int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0,
        num_inf=int(np.isinf(array).sum()) if array.dtype.kind == "f" else 0,
        is_whole=bool(np.all(finite == np.floor(finite))) if array.dtype.kind == "f" else True,
    )


def _kind_and_dtype(value: Any) -> tuple[str, str | None]:
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return "tensor", str(value.dtype).removeprefix("torch.")
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype)
    if isinstance(value, np.generic):
        return "number", str(value.dtype)
    if isinstance(value, bool):
        return "boolean", "bool"
    if isinstance(value, (int, float)):
        return "number", type(value).__name__
    if isinstance(value, (list, tuple)):
        return "sequence", type(value[0]).__name__ if value else None
    return type(value).__qualname__, None


def view_sample(sample: Any) -> tuple[ValueView, ...]:
    """Returns what each field of a sample is, in the sample's own order."""
    return tuple(view_value(field, value) for field, value in flatten(sample))
