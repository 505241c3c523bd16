"""Guesses what a field is for, by the names and places that people use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.contract.field import Dim, Role
from headrace.contract.view import ValueView

__all__ = ["guess_role", "mask_for"]

TARGET_NAMES = frozenset(
    {
        "label",
        "labels",
        "label_id",
        "label_ids",
        "target",
        "targets",
        "y",
        "class",
        "classes",
        "class_id",
        "cls",
        "category",
    }
)
ID_NAMES = frozenset(
    {"id", "ids", "idx", "index", "sample_id", "uid", "uuid", "key", "__key__", "path", "filename", "file_name"}
)

_Shapes = Mapping[str, tuple[tuple[Dim, ...] | None, str | None]]


def guess_role(name: str, column: Sequence[ValueView | None], first: Any) -> Role:
    """Returns what a field is for.

    Args:
        name: Name of the field; its last part counts.
        column: Its views over the samples.
        first: A sample, for the place of the field in it.
    """
    views = [view for view in column if view is not None]
    word = name.rpartition(".")[2].lower()
    is_text = all(view.kind in {"string", "bytes"} for view in views)
    if not is_text and (word == "mask" or word.endswith("_mask")):
        return _role_of_mask(word, views)
    if word in TARGET_NAMES or _is_last_number_of_tuple(name, views, first):
        return "target"
    if word in ID_NAMES:
        return "id"
    return "other" if is_text else "input"


def _role_of_mask(word: str, views: Sequence[ValueView]) -> Role:
    """Tells flags for what is real from a picture of classes, which is what segmentation learns and calls `mask`."""
    is_flags = all({view.minimum, view.maximum} <= {None, 0.0, 1.0} for view in views)
    is_line = all(view.shape is not None and len(view.shape) <= 1 for view in views)
    return "mask" if is_flags and (is_line or word != "mask") else "target"


def _is_last_number_of_tuple(name: str, views: Sequence[ValueView], first: Any) -> bool:
    """True for the label of a sample such as (image, label)."""
    is_plain_tuple = isinstance(first, (tuple, list)) and not hasattr(first, "_fields") and len(first) > 1
    if not is_plain_tuple or name != str(len(first) - 1) or not views:
        return False
    return all(view.shape == () and (view.dtype or "").startswith(("int", "uint")) for view in views)


def mask_for(name: str, roles: Mapping[str, Role], shapes: _Shapes) -> str | None:
    """Returns the mask field that tells real values of this field from padding: the one with its named first dim."""
    shape = shapes[name][0]
    if roles[name] in {"mask", "id"} or not shape or not isinstance(shape[0], str):
        return None
    masks = [other for other, role in roles.items() if role == "mask" and shapes[other][0] == shape[:1]]
    return masks[0] if len(masks) == 1 else None
