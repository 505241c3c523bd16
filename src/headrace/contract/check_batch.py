"""Holds one batch against the fields of a contract; a wrong value is traced back to its row, and so to a sample.

Axes: `B` rows of the batch, then the axes of the field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.contract.breach import Breach
from headrace.contract.check_shape import Sizes, check_shape
from headrace.contract.check_values import value_faults
from headrace.contract.field import Field, shape_text
from headrace.contract.view import SOLE_FIELD, as_array, view_form
from headrace.errors import SampleId

__all__ = ["check_batch"]

_ABSENT = object()


def check_batch(fields: Sequence[Field], batch: Any, sample_ids: Sequence[SampleId]) -> list[Breach]:
    """Returns what is not as the fields say; an empty list for a sound batch.

    Args:
        fields: Fields of the contract.
        batch: What collate returned: a structure like that of a sample, tensors and arrays with B in front; or lists of
            B values, which are checked row by row.
        sample_ids: (B,) identities of the rows.

    Cost: two passes over each floating or bounded field; a search by row only for fields that break a rule.
    """
    breaches: list[Breach] = []
    sizes: Sizes = {}
    declared = {field.name: field for field in fields}
    for field in fields:
        value = _find(batch, field.name)
        if value is _ABSENT or value is None:
            if field.required:
                breaches.append(_breach(field, field.describe(), "no such field", is_incomplete=True))
            continue
        breaches += _check_field(field, value, sample_ids, sizes, _mask_of(field, batch))
        if field.padding_value is not None and field.mask is not None:
            breaches += _check_mask(field, declared.get(field.mask), batch, value)
    return breaches


def _find(batch: Any, name: str) -> Any:
    """Returns the part of a batch that stands where the field stands in a sample; `_ABSENT` if there is none."""
    if name == SOLE_FIELD and not isinstance(batch, Mapping) and not hasattr(batch, "_fields"):
        return batch
    for key, part in _parts(batch):
        if key == name:
            return part
        # A key may hold dots itself, so every way to split the name is tried.
        if name.startswith(f"{key}."):
            found = _find(part, name[len(key) + 1 :])
            if found is not _ABSENT:
                return found
    return _ABSENT


def _parts(batch: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(batch, Mapping):
        yield from ((str(key), part) for key, part in batch.items())
    elif dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        yield from ((field.name, getattr(batch, field.name)) for field in dataclasses.fields(batch))
    elif isinstance(batch, tuple) and hasattr(batch, "_fields"):
        yield from zip(batch._fields, batch, strict=True)
    elif isinstance(batch, (list, tuple)):
        yield from ((str(place), part) for place, part in enumerate(batch))


def _breach(
    field: Field, expected: str, found: str, sample_id: SampleId | None = None, *, is_incomplete: bool = False
) -> Breach:
    return Breach(sample_id=sample_id, field=field.name, expected=expected, found=found, is_incomplete=is_incomplete)


def _check_field(
    field: Field, value: Any, sample_ids: Sequence[SampleId], sizes: Sizes, mask: npt.NDArray[np.bool_] | None
) -> list[Breach]:
    size = len(sample_ids)
    if isinstance(value, (list, tuple)):
        return _check_list(field, value, sample_ids)
    view = view_form(field.name, value)
    if view.shape is None or view.kind not in {"tensor", "array"}:
        if field.kind == "object" or field.kind is None:
            return []  # whatever a user's own collate makes of a user's own class
        return [_breach(field, f"a tensor of {size} rows", view.kind)]
    if view.shape[:1] != (size,):
        return [_breach(field, f"{size} rows, one per sample", f"shape {shape_text(view.shape)}")]
    breaches = []
    if not _dtype_fits(field, view.dtype):
        breaches.append(_breach(field, f"dtype {field.dtype}", f"dtype {view.dtype}"))
    if field.shape is not None:
        breaches += check_shape(field, view.shape[1:], sizes)
    array = as_array(value)
    if array is not None:
        breaches += _check_rows(field, array, sample_ids, mask)
    return breaches


def _check_list(field: Field, value: Sequence[Any], sample_ids: Sequence[SampleId]) -> list[Breach]:
    """Checks a batch that was kept as a list: strings, or what could not be stacked."""
    if field.kind == "sequence" and all(_leading(part) == len(sample_ids) for part in value):
        return []  # torch turns B lists of T numbers into a list of T tensors with B values
    if len(value) != len(sample_ids):
        return [_breach(field, f"{len(sample_ids)} rows, one per sample", f"a list of {len(value)}")]
    breaches = []
    for row, sample_id in zip(value, sample_ids, strict=True):
        array = as_array(row)
        if array is None:
            continue
        if field.shape is not None:
            breaches += [
                dataclasses.replace(breach, sample_id=sample_id) for breach in check_shape(field, array.shape, {})
            ]
        breaches += [_breach(field, *fault, sample_id) for fault in value_faults(field, array)]
    return breaches


def _leading(value: Any) -> int | None:
    shape = view_form("", value).shape
    return shape[0] if shape else None


def _dtype_fits(field: Field, dtype: str | None) -> bool:
    """True if a batch of this dtype is what the field becomes; Python numbers have no width, so any width will do."""
    if field.dtype is None or dtype is None:
        return True
    if field.dtype == "int":
        return dtype.startswith(("int", "uint"))
    if field.dtype == "float":
        return dtype.startswith(("float", "bfloat"))
    return dtype == field.dtype


def _mask_of(field: Field, batch: Any) -> npt.NDArray[np.bool_] | None:
    """Returns which values of a padded field are real; None if the batch does not say."""
    if field.padding_value is None or field.mask is None:
        return None
    mask = _find(batch, field.mask)
    array = None if mask is _ABSENT else as_array(mask)
    return None if array is None else array.astype(bool)


def _check_rows(
    field: Field, array: npt.NDArray[Any], sample_ids: Sequence[SampleId], mask: npt.NDArray[np.bool_] | None
) -> list[Breach]:
    """Names the rows that break a rule on values; padding is left out."""
    if not value_faults(field, array):
        return []
    is_real = _spread(field, mask, array.shape)
    if is_real is None and field.padding_value is not None:
        is_real = (
            array != field.padding_value
        )  # without a usable mask (a breach of its own) padding is told by its value
    breaches = []
    for row, sample_id in enumerate(sample_ids):
        values = array[row] if is_real is None else array[row][is_real[row]]
        breaches += [_breach(field, *fault, sample_id) for fault in value_faults(field, values)]
    return breaches


def _spread(field: Field, mask: npt.NDArray[np.bool_] | None, shape: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
    """Returns a mask over (B, variable dims) spread over all axes of the field; None if it does not fit."""
    kept = _mask_shape(field, shape)
    if mask is None or mask.shape != kept:
        return None
    is_kept = [True, *(isinstance(dim, str) for dim in field.shape or ())]
    wide = mask.reshape([size if keep else 1 for size, keep in zip(shape, is_kept, strict=True)])
    return np.broadcast_to(wide, shape)


def _mask_shape(field: Field, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Returns the shape of the mask of a padded batch: its rows and the axes that vary; None if the batch does not fit."""
    if shape is None or field.shape is None or len(shape) != 1 + len(field.shape):
        return None
    return shape[:1] + tuple(size for size, dim in zip(shape[1:], field.shape, strict=True) if isinstance(dim, str))


def _check_mask(field: Field, declared: Field | None, batch: Any, value: Any) -> list[Breach]:
    """Checks the mask that says what is real in a padded field: there, bool, and of its size."""
    name = field.mask or ""
    mask = _find(batch, name)
    if mask is _ABSENT:
        if declared is not None:
            return []  # reported as a missing field already
        return [
            Breach(sample_id=None, field=name, expected=f"the mask of padded field {field.name}", found="no such field")
        ]
    view, shape = view_form(name, mask), _mask_shape(field, view_form(field.name, value).shape)
    dtype = "bool" if declared is None or declared.dtype is None else declared.dtype
    breaches = []
    if view.dtype != dtype:
        breaches.append(Breach(sample_id=None, field=name, expected=f"dtype {dtype}", found=f"dtype {view.dtype}"))
    if shape is not None and view.shape != shape:
        found = "no shape" if view.shape is None else f"shape {shape_text(view.shape)}"
        expected = f"shape {shape_text(shape)} as in {field.name}"
        breaches.append(Breach(sample_id=None, field=name, expected=expected, found=found))
    return breaches
