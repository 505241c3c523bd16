"""Holds one sample against the fields of a contract: form first (kind, dtype, shape), then values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.contract.breach import Breach
from headrace.contract.check_shape import Sizes, check_shape
from headrace.contract.check_values import value_faults
from headrace.contract.field import KINDS, Field, shape_text
from headrace.contract.view import ValueView, as_array, flatten, view_form
from headrace.errors import SampleId, nearest

__all__ = ["check_sample", "check_stage", "kind_of"]


def check_sample(
    fields: Sequence[Field], sample: Any, sample_id: SampleId, *, allow_extra: bool, allow_none: bool
) -> list[Breach]:
    """Returns what is not as the fields say; an empty list for a sound sample.

    Cost: two passes over each floating or bounded field, without a copy.
    """
    if sample is None:
        if allow_none:
            return []
        hint = "a transform filtered it; if that is wanted, declare may_filter"
        lost = Breach(sample_id=sample_id, field=None, expected="a sample", found="None", hint=hint, is_incomplete=True)
        return [lost]
    values: dict[str, Any] = {}
    for name, value in flatten(sample):
        values.setdefault(name, value)
    breaches: list[Breach] = []
    sizes: Sizes = {}
    for field in fields:
        if values.get(field.name) is None:
            if field.required:
                breaches.append(_missing(field, values, sample_id))
            continue
        value = values[field.name]
        found = _check_value(field, value, sizes)
        breaches += [dataclasses.replace(breach, sample_id=sample_id) for breach in found]
    if not allow_extra:
        declared = {field.name for field in fields}
        breaches += [_extra(name, declared, sample_id) for name in values if name not in declared]
    return breaches


def kind_of(view: ValueView) -> str:
    """Returns the kind as contracts spell it: classes of no known kind are all `object`."""
    return view.kind if view.kind in KINDS or view.kind == "none" else "object"


def _missing(field: Field, values: Mapping[str, Any], sample_id: SampleId) -> Breach:
    found = "None" if field.name in values else "no such field" + nearest(field.name, values)
    return Breach(sample_id=sample_id, field=field.name, expected=field.describe(), found=found, is_incomplete=True)


def _extra(name: str, declared: Iterable[str], sample_id: SampleId) -> Breach:
    hint = nearest(name, declared).removeprefix("; ")
    return Breach(
        sample_id=sample_id,
        field=name,
        expected="no field of this name",
        found="one",
        hint=hint or 'declare it, or extra_fields = "ignore"',
    )


def _check_value(field: Field, value: Any, sizes: Sizes) -> Iterator[Breach]:
    """Yields breaches of one present value, without the sample's id."""
    view = view_form(field.name, value)
    kind = kind_of(view)
    if field.kind is not None and kind != field.kind:
        found = view.kind if view.kind == kind else f"{view.kind} object"
        yield _breach(field, f"kind {field.kind}", f"kind {found}")
        return
    is_empty_list = kind == "sequence" and view.shape == (0,)
    if field.dtype is not None and view.dtype != field.dtype and not is_empty_list:
        yield _breach(field, f"dtype {field.dtype}", f"dtype {view.dtype}")
    if field.shape is not None:
        yield from check_shape(field, view.shape, sizes)
    # Values are looked at last and whatever the shape: a wrong shape must not hide a wrong value.
    array = as_array(value)
    if array is not None:
        yield from (_breach(field, *fault) for fault in value_faults(field, array))


def _breach(field: Field, expected: str, found: str, hint: str | None = None) -> Breach:
    return Breach(sample_id=None, field=field.name, expected=expected, found=found, hint=hint)


def check_stage(
    before: Any, after: Any, sample_id: SampleId, stage: str, *, may_filter: bool, may_reshape: bool
) -> list[Breach]:
    """Returns what one stage did to a sample without being allowed to: dropped it, or changed the shape of a field.

    Args:
        before: The sample that went in.
        after: What came out; None = dropped.
        sample_id: Identity of the sample.
        stage: Name of the stage, for the message.
        may_filter: True if the stage may drop samples.
        may_reshape: True if it may change shapes.
    """
    if after is None and before is not None:
        hint = f"stage {stage} filtered the sample; if that is wanted, declare may_filter"
        lost = Breach(sample_id=sample_id, field=None, expected="a sample", found="None", hint=hint)
        return [] if may_filter else [lost]
    if may_reshape or before is None:
        return []
    shapes = {name: view_form(name, value).shape for name, value in flatten(before)}
    breaches = []
    for name, value in flatten(after):
        old, new = shapes.get(name), view_form(name, value).shape
        if isinstance(value, (str, bytes)) or old is None or new is None or old == new:
            continue
        breaches.append(
            Breach(
                sample_id=sample_id,
                field=name,
                expected=f"shape {shape_text(old)} as before stage {stage}",
                found=f"shape {shape_text(new)}",
                hint="if the change is wanted, declare may_reshape",
            )
        )
    return breaches
