"""Which samples a loader drew, as rows of the data set under all wrappers: one byte for each row, ten million at most."""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["Drawn", "Roots", "below_subsets", "shared_rows"]

MOST_ROWS = 10_000_000
"""Ten megabytes for one loader. Larger data sets are not followed: their overlaps stay unknown, which says nothing."""
MOST_WRAPPERS = 8


class Roots:
    """Gives each data set that lies under wrappers a name, without keeping it alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._num_named = 0

    def name(self, dataset: Any) -> str | None:
        """Returns the same name for the same data set; None for one that cannot be followed."""
        files = _fingerprint(dataset)
        if files is not None:
            return files
        known = self._known.get(id(dataset))
        if known is not None and known[0]() is dataset:
            return known[1]
        try:
            reference = weakref.ref(dataset)
        except TypeError:  # a plain list: its place in memory would be taken by another one after it
            return None
        name = f"{type(dataset).__qualname__} {self._num_named}"
        self._num_named += 1
        self._known[id(dataset)] = (reference, name)
        return name

    def call(self, dataset: Any, name: str) -> None:
        """Gives a data set the name of one that it stands for: it was made anew over the same data."""
        known = self._known.get(id(dataset))
        if known is None or known[0]() is not dataset:
            with contextlib.suppress(TypeError):
                self._known[id(dataset)] = (weakref.ref(dataset), name)


def _fingerprint(dataset: Any) -> str | None:
    """A name for a folder of files: the same when it is opened twice, with other transforms."""
    samples = vars(dataset).get("samples") if hasattr(dataset, "__dict__") else None
    if not isinstance(samples, list) or not samples:
        return None
    spread = [samples[row] for row in range(0, len(samples), max(1, len(samples) // 16))]
    if not all(isinstance(sample, tuple) and sample and isinstance(sample[0], str) for sample in spread):
        return None
    digest = hashlib.blake2b(repr((len(samples), spread)).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"files {digest}"


Mark = Callable[[Sequence[int]], None]
"""Told sample numbers of one data set. Holds parts of that data set: it must not outlive the walk through it."""


class Drawn:
    """The rows that one loader drew, by the data set that they lie in."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._rows: dict[str, np.ndarray[Any, Any]] = {}
        self._names: list[str] = []
        """Of the data sets under the wrappers, in the order in which they are met."""
        self._num_met = 0
        self.is_known = True
        self.is_renewed = False
        """True: a data set made anew over the same data is followed now, and its rows are those of the first."""

    def follow(self, dataset: Any) -> Mark | None:
        """Returns what marks sample numbers of `dataset`; None if they cannot be followed down to a data set."""
        self._num_met = 0
        try:
            return self._follow(dataset, 0)
        except Exception:  # a wrapper that looks like torch's and is none, an odd length
            self.lose()
            return None

    def lose(self) -> None:
        """Some of its samples are not known, so nothing is said of them."""
        self.is_known = False
        self._rows.clear()

    def _follow(self, dataset: Any, depth: int) -> Mark:
        if depth < MOST_WRAPPERS:
            kind = _wrapper(dataset)
            if kind == "subset":
                return _through(_as_list(dataset.indices), self._follow(dataset.dataset, depth + 1))
            if kind == "concat":
                parts = [self._follow(part, depth + 1) for part in dataset.datasets]
                return _into(list(dataset.cumulative_sizes), parts)
            if (inner := _sole_inner(dataset)) is not None:
                return self._follow(inner, depth + 1)
        name, length = self._name(dataset), len(dataset)
        if name is None or length > MOST_ROWS:
            raise ValueError("cannot be followed")
        marks = self._rows.setdefault(name, np.zeros(length, dtype=bool))
        if len(marks) != length:
            raise ValueError("has grown")

        def mark(rows: Sequence[int]) -> None:
            marks[rows] = True

        return mark

    def _name(self, dataset: Any) -> str | None:
        met, self._num_met = self._num_met, self._num_met + 1
        if self.is_renewed and met < len(self._names):
            self._roots.call(dataset, self._names[met])
            return self._names[met]
        name = self._roots.name(dataset)
        if name is not None and met == len(self._names):
            self._names.append(name)
        return name

    @property
    def root(self) -> str | None:
        """Name of the data set that its samples lie in; None if there are several, or if it is not known."""
        return next(iter(self._rows)) if len(self._rows) == 1 else None

    @property
    def count(self) -> int:
        """Different samples; 0 if not known."""
        return sum(int(np.count_nonzero(marks)) for marks in self._rows.values())

    @property
    def rows(self) -> dict[str, np.ndarray[Any, Any]]:
        """Marks of each data set: bool, one for each row."""
        return self._rows


def shared_rows(first: Drawn, second: Drawn) -> tuple[int, tuple[int, ...]]:
    """Returns how many samples both drew, and the first few of them."""
    total = 0
    few: list[int] = []
    for name, marks in first.rows.items():
        others = second.rows.get(name)
        if others is not None and len(others) == len(marks):
            both = np.flatnonzero(marks & others)
            total += len(both)
            few += [int(row) for row in both[: 5 - len(few)]] if len(few) < 5 else []
    return total, tuple(few)


def _as_list(indices: Any) -> Any:
    """A list as it is; an array or tensor as a numpy array, which shares its memory and is read faster."""
    return indices if isinstance(indices, (list, tuple, range)) else np.asarray(indices)


def below_subsets(dataset: Any) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """Returns what turns positions in torch's Subsets into rows of the data set that lies under them."""
    levels: list[Any] = []
    while len(levels) < MOST_WRAPPERS and _wrapper(dataset) == "subset":
        levels.append(_as_list(dataset.indices))
        dataset = dataset.dataset

    def rows(positions: Sequence[int]) -> tuple[int, ...]:
        found: Sequence[int] = positions
        for indices in levels:
            found = [int(indices[position]) for position in found]
        return tuple(found)

    return rows


def _through(indices: Any, inner: Mark) -> Mark:
    return lambda rows: inner([int(indices[row]) for row in rows])


def _into(ends: list[int], parts: list[Mark]) -> Mark:
    def mark(rows: Sequence[int]) -> None:
        members: dict[int, list[int]] = {}
        for row in rows:
            part = bisect.bisect_right(ends, row)
            members.setdefault(part, []).append(row - (ends[part - 1] if part else 0))
        for part, chosen in members.items():
            parts[part](chosen)

    return mark


def _sole_inner(dataset: Any) -> Any:
    """The one data set of equal length that a wrapper of the user's own holds, e.g. to transform its samples.

    Row i of the wrapper may be another row of it, but which samples can be drawn at all is the same.
    """
    from torch.utils.data import Dataset

    held: list[Any] = [value for value in getattr(dataset, "__dict__", {}).values() if isinstance(value, Dataset)]
    return held[0] if len(held) == 1 and len(held[0]) == len(dataset) else None


def _wrapper(dataset: Any) -> str | None:
    """`subset` or `concat` for torch's own wrappers and what is derived from them without a `__getitem__` of its own."""
    for base in type(dataset).__mro__:
        if base.__module__ == "torch.utils.data.dataset" and base.__qualname__ in ("Subset", "ConcatDataset"):
            return "subset" if base.__qualname__ == "Subset" else "concat"
        if "__getitem__" in vars(base):
            return None
    return None
