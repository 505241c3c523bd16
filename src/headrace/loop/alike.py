"""Are the batches of a run of one structure, and are their targets among the classes? Asked of any loader's batches.

What may differ between healthy batches: the number of samples, because the last batch is smaller, and the size of any other
axis, because text is padded to the longest of its batch, and pictures may keep their sizes. A model that needs one size refuses
another one by itself. The number of axes may not differ: (B, 1) where (B,) was meant is broadcast without a word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace.contract.check import kind_of
from headrace.contract.check_values import value_faults
from headrace.contract.field import Field, shape_text
from headrace.contract.ranges import IGNORED_MARKS, classes_of
from headrace.contract.roles import guess_role
from headrace.contract.view import ValueView, as_array, flatten, view_form, view_value

__all__ = ["batch_faults"]

NAMED = ("first", "second")


def batch_faults(batches: Sequence[Any], data: Any) -> list[str]:
    """Returns in words what is not alike in two batches, and targets that are none of the classes; silent on healthy ones.

    Args:
        batches: One or two batches of a run.
        data: The data set, which may say what its classes are.

    Cost: a pass over the fields, and a copy of those that lie on a device.
    """
    opened = [_opened(batch, batches) for batch in batches]
    found = _unlike(*opened) if len(opened) == len(NAMED) else []
    num_classes = classes_of(data)
    return found if num_classes is None else found + _targets_outside(opened, batches[0], num_classes)


def _opened(batch: Any, batches: Sequence[Any]) -> dict[str, Any]:
    """The fields of a batch by name. Lists below the top, and a list of samples, are one field each: they are as long as there are samples."""
    if isinstance(batch, list | tuple) and not hasattr(batch, "_fields"):
        has_columns = any(len(getattr(part, "shape", ())) > 0 for part in batch)
        if not has_columns or len({len(one) for one in batches if isinstance(one, list | tuple)}) > 1:
            return {"batch": []}
        batch = {str(place): part for place, part in enumerate(batch)}
    return dict(flatten(_without_lists(batch)))


def _without_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_lists(part) for name, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _without_lists(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _without_lists(part) for name, part in zip(value._fields, value, strict=True)}
    return [] if isinstance(value, list | tuple) else value


def _unlike(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    found = []
    for name in {**one, **two}:
        absent = next((NAMED[place] for place, batch in enumerate((one, two)) if name not in batch), None)
        if absent is not None:
            found.append(f"field {name} is missing in the {absent} of two batches, and the other one has it")
            continue
        mine, theirs = (view_form(name, batch[name]) for batch in (one, two))
        if (rule := _rule(mine, theirs)) is not None:
            found.append(
                f"field {name} is {_words(mine)} in one batch and {_words(theirs)} in the next: {rule}. Samples that are not all alike, "
                "or a squeeze() that took one axis too many"
            )
    return found


def _rule(one: ValueView, two: ValueView) -> str | None:
    """What two views of a field differ in that should be the same in all batches; None: nothing."""
    if kind_of(one) != kind_of(two):
        return "another kind of value"
    if kind_of(one) not in {"tensor", "array"}:
        return None
    if _plain_dtype(one) != _plain_dtype(two):
        return "another dtype"
    if one.shape is not None and two.shape is not None and len(one.shape) != len(two.shape):
        return "another number of axes"
    return None


def _plain_dtype(view: ValueView) -> str | None:
    """The dtype; numpy's text has its length in it, which is no difference."""
    dtype = view.dtype or ""
    return dtype[:2] if dtype.startswith(("<U", ">U", "|S")) else dtype


def _words(view: ValueView) -> str:
    if kind_of(view) not in {"tensor", "array"}:
        return "None" if view.kind == "none" else f"a {'list' if view.kind == 'sequence' else view.kind}"
    return f"a{'n' if view.kind == 'array' else ''} {view.kind} {view.dtype}" + (
        "" if view.shape is None else f" {shape_text(view.shape)}"
    )


def _targets_outside(opened: Sequence[Mapping[str, Any]], first: Any, num_classes: int) -> list[str]:
    """Targets that are no class of the data set. A mark for "no target" is fine; where most are outside, they are of another kind."""
    found = []
    for name, value in opened[0].items():
        if not _is_target(name, value, first):
            continue
        columns = [column for batch in opened if (column := as_array(batch.get(name))) is not None]
        if any(column.dtype.kind not in "iu" for column in columns):
            continue
        values = np.concatenate([np.zeros(0, np.int64), *(column.reshape(-1) for column in columns)])
        outside = values[(values < 0) | (values >= num_classes)]
        marks = {int(one) for one in np.unique(outside)} & {int(one) for one in IGNORED_MARKS}
        wrong = outside[~np.isin(outside, list(marks))]
        if 0 < 2 * len(wrong) <= len(values):
            ((expected, seen),) = value_faults(Field(name=name, role="target", num_classes=num_classes), wrong)
            found.append(f"field {name}: expected {expected}, found {seen}. Targets begin at 0")
    return found


def _is_target(name: str, value: Any, first: Any) -> bool:
    view = view_value(name, value)
    row = dataclasses.replace(view, shape=None if view.shape is None else view.shape[1:])  # of a sample
    return guess_role(name, [row], first) == "target"
