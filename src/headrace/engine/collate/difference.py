"""Finds the first sample of a batch that does not join with the others, by torch's rules, and says why.

Runs only after joining has failed, so it may take its time; it looks at structure, never at values.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.contract.field import shape_text
from headrace.contract.view import SOLE_FIELD, view_form
from headrace.errors import CollateError, SampleId, Where

__all__ = ["Difference", "first_difference", "to_error"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Why samples do not join: one field that is not alike in two samples, or that cannot be joined at all."""

    place: int
    """Place in the batch of the first sample that differs, from 0."""
    first_place: int | None
    """Place of the sample it was compared with; None: it is at fault alone."""
    field: str
    """Name of the field, as in a contract."""
    expected: str
    """What is in the sample it was compared with, or what is needed, e.g. `shape (3, 16, 16)`."""
    found: str
    """What is in the sample that differs, e.g. `shape (1, 16, 16)`."""
    why: str
    """The rule that is broken."""
    do: str
    """What to do."""


class _Unlike(NamedTuple):
    """A difference without its places."""

    field: str
    expected: str
    found: str
    why: str
    do: str


def first_difference(samples: Sequence[Any]) -> Difference | None:
    """Returns the first sample that does not join, and why; None if all are alike as far as torch's rules look.

    Each sample is compared with the first one, as torch does, which takes the first one's structure for all. If it is
    the first one that differs, and the next two agree, the first one is named.
    """
    for place, sample in enumerate(samples):
        unlike = _compare(samples[0], sample, "") if place else _unjoinable(sample, "")
        if unlike is None:
            continue
        if place == 1 and len(samples) > 2 and _compare(samples[1], samples[2], "") is None:
            turned = _compare(samples[1], samples[0], "")
            if turned is not None and _compare(samples[0], samples[2], "") is not None:
                return Difference(place=0, first_place=1, **turned._asdict())
        return Difference(place=place, first_place=0 if place else None, **unlike._asdict())
    return None


def to_error(
    difference: Difference, sample_ids: Sequence[SampleId] | None, collate_name: str, where: Where | None = None
) -> CollateError:
    """Returns the error that names the samples.

    Args:
        difference: What was found.
        sample_ids: (B,) identities; None: places in the batch are named instead.
        collate_name: Who joins, for the stage.
        where: What else is known about the place; its sample and field are filled in.
    """

    def name(place: int) -> str:
        return f"the sample at place {place}" if sample_ids is None else f"sample {sample_ids[place]}"

    odd = name(difference.place)
    subject = "" if difference.field == SOLE_FIELD else f"field {difference.field} has "
    if difference.first_place is None:
        what = f"{odd} does not join into a batch: {subject}{difference.found}, expected {difference.expected}"
    else:
        first = f"{difference.expected} in {name(difference.first_place)}"
        what = f"samples do not join into a batch: {subject}{first} and {difference.found} in {odd}"
    place = where or Where()
    error = CollateError(
        what,
        where=dataclasses.replace(
            place,
            sample_id=place.sample_id if sample_ids is None else sample_ids[difference.place],
            field=difference.field,
            stage=place.stage or collate_name,
        ),
        why=difference.why,
        do=difference.do,
    )
    error.difference = difference
    return error


def _shown(value: Any) -> str:
    return "None" if value is None else f"type {type(value).__qualname__}"


def _child(prefix: str, name: Any) -> str:
    return f"{prefix}.{name}" if prefix else str(name)


def _names(container: Any) -> Iterable[Any]:
    """Returns how the parts of a container are called: keys, names of a named tuple, places."""
    if isinstance(container, Mapping):
        return container.keys()
    return getattr(container, "_fields", range(len(container)))


def _holder(value: Any) -> str:
    """Returns the group within which torch joins: containers, text, tensors, arrays, numbers."""
    if value is None:
        return "None"
    if isinstance(value, (str, bytes)):
        return "string" if isinstance(value, str) else "bytes"
    if hasattr(value, "detach") and hasattr(value, "numpy"):
        return "tensor"
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, (numbers.Number, np.generic)):
        return "number"
    if isinstance(value, Mapping):
        return "dict"
    if isinstance(value, Sequence):
        return "list"
    return type(value).__qualname__


_JOINED = frozenset({"string", "bytes", "tensor", "array", "number", "dict", "list"})


def _unjoinable(value: Any, prefix: str) -> _Unlike | None:
    """Returns the first part of a sample that torch joins with nothing."""
    holder = _holder(value)
    if holder in {"dict", "list"}:
        parts = zip(_names(value), value.values() if holder == "dict" else value, strict=True)
        return next((found for name, part in parts if (found := _unjoinable(part, _child(prefix, name)))), None)
    field = prefix or SOLE_FIELD
    needed = "a tensor, array, number, string, dict or list"
    if holder == "None":
        do = "have the data set raise instead of returning None, and choose on_error=Skip(...) or Replace(...)"
        return _Unlike(field, needed, "None", "None cannot be stacked", do)
    if holder == "array" and value.dtype.kind in "SaUO":
        rule, do = "torch has no tensors of text or objects", "return a list of strings instead"
        return _Unlike(field, "numbers", f"an array of dtype {value.dtype}", rule, do)
    if holder not in _JOINED:
        do = "convert it in the data set or in a transform (e.g. an image to an array), or give a collate_fn"
        return _Unlike(field, needed, f"type {holder}", "torch's default rules know no such type", do)
    return None


def _compare(first: Any, other: Any, prefix: str) -> _Unlike | None:
    """Returns the first place where two samples do not join."""
    field, mine, theirs = prefix or SOLE_FIELD, _holder(first), _holder(other)
    if mine in {"string", "bytes"}:
        return None  # text is collected, not joined, whatever the others are
    is_scalar = {mine, theirs} == {"array", "number"} and np.shape(first) == np.shape(other)
    if mine != theirs and not is_scalar:
        cause = _unjoinable(other, prefix)
        if cause is not None:
            return _Unlike(field, _shown(first), _shown(other), cause.why, cause.do)
        rule, do = "only values of one type join", "make the type the same in all samples"
        return _Unlike(field, _shown(first), _shown(other), rule, do)
    if mine == "dict":
        missing = [key for key in first if key not in other]
        if missing:
            mine, theirs = (f"keys {', '.join(map(repr, part))}" for part in (first, other))
            rule = f"key {missing[0]!r} of the first sample is missing in the other"
            return _Unlike(field, mine, theirs, rule, "return the same keys for every sample")
        pairs = ((_child(prefix, key), first[key], other[key]) for key in first)
    elif mine == "list":
        if len(first) != len(other):
            rule, do = (
                "torch joins lists element by element",
                "pad them to one length, or give a contract with a padding_value",
            )
            return _Unlike(field, f"length {len(first)}", f"length {len(other)}", rule, do)
        pairs = ((_child(prefix, name), *pair) for name, *pair in zip(_names(first), first, other, strict=True))
    else:
        return _compare_leaves(field, first, other)
    return next((found for name, a, b in pairs if (found := _compare(a, b, name))), None)


def _compare_leaves(field: str, first: Any, other: Any) -> _Unlike | None:
    """Compares two values of one type: shape, layout, device."""
    shapes = [view_form(field, value).shape for value in (first, other)]
    if shapes[0] != shapes[1] and None not in shapes:
        do = "make the shapes equal (convert, crop, resize or pad), or give a contract with named dims and a padding_value"
        mine, theirs = (f"shape {shape_text(shape or ())}" for shape in shapes)
        return _Unlike(field, mine, theirs, "only equal shapes stack", do)
    for trait in ("layout", "device"):
        mine, theirs = (str(getattr(value, trait, "")) for value in (first, other))
        if mine != theirs:
            return _Unlike(
                field, f"{trait} {mine}", f"{trait} {theirs}", f"only one {trait} stacks", f"use one {trait} for all"
            )
    return None
