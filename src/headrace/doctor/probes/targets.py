"""Which fields are targets: the contract's word, else the usual names and places."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.contract.view import ValueView
from headrace.doctor.evidence import SampleRead

__all__ = ["find_targets"]

_NAMES = frozenset({
    "label", "labels", "target", "targets", "y", "class", "classes", "cls", "class_id", "class_ids", "category_id",
})  # fmt: skip
_MASK_NAMES = frozenset({"mask", "masks", "segmentation"})
"""Targets if they are images of class numbers; a mask over a sequence is none."""
_NUMERIC = frozenset({"tensor", "array", "number", "sequence"})


def find_targets(reads: Sequence[SampleRead], *, knows_classes: bool) -> tuple[str, ...]:
    """Returns the names of the fields that are targets in every sample in which they are.

    Args:
        reads: Samples that came out.
        knows_classes: True if the number of classes is known. Then a lone number in second place is taken for a class
            also if it is a float, as long as it is whole in every sample.
    """
    found = dict.fromkeys(view.field for read in reads for view in read.fields if _is_named_target(view))
    pairs = [read.fields[-1] for read in reads if _is_pair(read.fields)]
    if pairs and len(pairs) == len(reads) and all(_is_class(view, may_be_float=knows_classes) for view in pairs):
        found.setdefault(pairs[0].field)
    return tuple(found)


def _is_named_target(view: ValueView) -> bool:
    name = view.field.rpartition(".")[2].lower()
    if name in _NAMES:
        return view.kind in _NUMERIC
    return name in _MASK_NAMES and view.kind in {"tensor", "array"} and _is_integer(view) and len(view.shape or ()) >= 2


def _is_pair(fields: Sequence[ValueView]) -> bool:
    """True for (anything, leaf): a sample of two places, the second of them without parts."""
    return {view.field.partition(".")[0] for view in fields} == {"0", "1"} and fields[-1].field == "1"


def _is_class(view: ValueView, *, may_be_float: bool) -> bool:
    if view.kind not in _NUMERIC or view.shape is None or len(view.shape) > 1:
        return False
    return _is_integer(view) or (may_be_float and not view.shape and view.is_whole is True)


def _is_integer(view: ValueView) -> bool:
    return (view.dtype or "").startswith(("int", "uint"))
