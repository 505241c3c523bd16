"""Infers ranges of values: only what storage, a usual scale or the data set itself guarantees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.contract.view import ValueView

__all__ = ["IGNORED_MARKS", "classes_of", "natural_range", "target_values"]

IGNORED_MARKS = frozenset({-100.0, -1.0, 255.0})
"""What people write for "no target here": torch's losses, a plain minus one, and borders in segmentation masks."""


def natural_range(views: Sequence[ValueView], dtype: str | None) -> dict[str, Any]:
    """Returns the bounds that the storage or a usual scale gives; see the top of the file."""
    if dtype == "uint8":
        return {"minimum": 0, "maximum": 255}
    lows = [view.minimum for view in views if view.minimum is not None]
    highs = [view.maximum for view in views if view.maximum is not None]
    if dtype is None or "float" not in dtype or not lows:
        return {}
    seen = (min(lows), max(highs))
    # Whole numbers from 0 to 1 or from -1 to 1 may be counts or flags, which know no such scale.
    has_fractions = any(view.is_whole is False for view in views)
    if seen == (0.0, 255.0) or (has_fractions and seen in {(0.0, 1.0), (-1.0, 1.0)}):
        return {"minimum": seen[0], "maximum": seen[1]}
    return {}


def target_values(views: Sequence[ValueView], data: Any) -> dict[str, Any]:
    """Returns classes, bounds and ignored value of a target, as far as the data set says them."""
    is_integer = all(
        view.is_whole and view.dtype is not None and view.dtype.startswith(("int", "uint")) for view in views
    )
    if not views or not is_integer:
        return {}
    num_classes = classes_of(data)
    if num_classes is None:
        return {}
    lows = [view.minimum for view in views if view.minimum is not None]
    highs = [view.maximum for view in views if view.maximum is not None]
    odd = [low for low in lows if low < 0] + [high for high in highs if high >= num_classes]
    if 2 * len(odd) > len(views):
        return {}  # the classes that the data set speaks of are those of another field
    marks = set(odd)
    ignored = int(marks.pop()) if len(marks) == 1 and marks <= IGNORED_MARKS else None
    return {"num_classes": num_classes, "ignore_index": ignored}


def classes_of(data: Any) -> int | None:
    """Returns how many classes a data set, or one that it wraps, says it has; None if none says so."""
    return next(filter(None, (_num_classes(part) for part in _layers(data))), None)


def _layers(data: Any) -> Iterator[Any]:
    """Yields a data set and what it wraps: a subset's `dataset`, a plan's `source`."""
    for _ in range(8):  # deeper nesting is a cycle rather than a data set
        yield data
        data = getattr(data, "dataset", None) or getattr(data, "source", None)
        if data is None:
            return


def _num_classes(data: Any) -> int | None:
    """Returns how many classes a data set says it has; None if it does not say."""
    classes, number = getattr(data, "classes", None), getattr(data, "num_classes", None)
    if isinstance(classes, (Sequence, Mapping)) and not isinstance(classes, (str, bytes)) and len(classes):
        return len(classes)
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None
