"""Rows that were asked for together, taken apart: a list of samples, or one joined batch of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.doctor.subject.walking import split_batch

__all__ = ["Divider", "rows_in"]


class Divider:
    """Divides what one data set makes of several rows, and remembers how: `[x, y]` of two rows can be meant in two ways."""

    def __init__(self) -> None:
        self.is_joined: bool | None = None
        """True: it makes one batch of the rows. False: a list of samples. None: not known so far."""

    def __call__(self, made: Any, number: int) -> list[Any] | None:
        """Returns the samples.

        Args:
            made: What the data set made of the rows.
            number: Of rows that it was asked for.

        Returns:
            As many samples, in order; None where it cannot be divided into so many.
        """
        is_list = isinstance(made, (list, tuple)) and not hasattr(made, "_fields") and len(made) == number
        apart = list(made) if is_list else None
        joined = split_batch(made, number, keeps_lists=True)
        if joined is not None and len(joined) != number:
            joined = None
        if apart is None or joined is None:
            found = joined if apart is None else apart
            if found is not None and self.is_joined is None:
                self.is_joined = apart is None
            return found
        # Fields differ in form, samples of one data set seldom do.
        is_joined = self.is_joined if self.is_joined is not None else not _are_alike(apart)
        return joined if is_joined else apart


def _are_alike(parts: Sequence[Any]) -> bool:
    return len({_form(part) for part in parts}) == 1


def _form(part: Any) -> tuple[Any, ...]:
    if isinstance(part, Mapping):
        return (dict, *part)
    shape = getattr(part, "shape", None)
    return (type(part), str(getattr(part, "dtype", "")), None if shape is None else len(shape))


def rows_in(index: Any, num_rows: int | None) -> tuple[list[Any], list[Any]] | None:
    """Returns the rows that an index asks for together, and each of them as an index of the same kind; None: it is one row.

    Tuples count as one: they are the indices of many dimensions, and of samplers that say more than a row.

    >>> rows_in([4, 2], 9)
    ([4, 2], [[4], [2]])
    """
    if isinstance(index, slice):
        if num_rows is None:
            return None
        rows = list(range(*index.indices(num_rows)))
        return (rows, [slice(row, row + 1) for row in rows]) if rows else None
    is_array = len(getattr(index, "shape", ())) == 1
    if not (is_array or isinstance(index, (list, range))) or not len(index):
        return None
    found = list(index)
    if not all(isinstance(one, str) or (hasattr(one, "__index__") and not isinstance(one, bool)) for one in found):
        return None
    return found, [index[place : place + 1] for place in range(len(found))]
