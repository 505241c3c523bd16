"""Finds out how a batch holds samples of several lengths: where it was filled up, with what, and what tells so."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.contract.view import as_array, flatten
from headrace.doctor.evidence.batches import PaddedField
from headrace.errors import SampleId

__all__ = ["find_paddings", "varying_fields"]

Array = npt.NDArray[Any]
_TELLING_WORDS = (
    "mask",
    "length",
    "len",
    "lens",
    "offset",
    "offsets",
    "seqlens",
    "sizes",
    "valid",
    "segment",
    "position",
)
"""Words in a field's name that promise to tell real from added places, in a form that is not recognised by its values."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Placed:
    """One field of the batch that holds one field of the samples."""

    field: str
    batch_field: str
    rows: list[Array]
    """The batch's rows, each (L, ...), L the common length."""
    lengths: list[int]
    """Real places of each row; they stand at its beginning, or at its end."""
    at_end: bool

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """True for real places, (B, L)."""
        place = np.arange(len(self.rows[0]))[None, :]
        lengths = np.asarray(self.lengths)[:, None]
        return place >= place.size - lengths if self.at_end else place < lengths

    def added(self) -> Array:
        """The values of all places that were added, (number, ...)."""
        return np.concatenate([row[~real] for row, real in zip(self.rows, self.mask, strict=True)])


def varying_fields(samples: Sequence[Any]) -> dict[str, list[Array]]:
    """Returns the arrays of each field whose length differs between samples while its further axes agree."""
    fields: dict[str, list[Array]] = {}
    for sample in samples:
        for name, value in flatten(sample):
            array = as_array(value)
            if array is not None and array.ndim:
                fields.setdefault(name, []).append(array)
    return {
        name: arrays
        for name, arrays in fields.items()
        if len(arrays) == len(samples)
        and len({array.shape[1:] for array in arrays}) == 1
        and len({len(array) for array in arrays}) > 1
    }


def find_paddings(samples: Sequence[Any], ids: Sequence[SampleId], batch: Any) -> tuple[PaddedField, ...]:
    """Returns the fields that were filled up to one length.

    A field is recognised by its values, whatever the batch calls it: each row begins, or ends, with the values of one
    sample, in any order of samples, batch or time first.
    """
    leaves = [(name, array) for name, value in flatten(batch) if (array := as_array(value)) is not None]
    others = [(name, value) for name, value in flatten(batch)]
    placed = [
        found
        for field, arrays in varying_fields(samples).items()
        for name, leaf in leaves
        if (found := _place(field, arrays, name, leaf)) is not None
    ]
    clear = [one for one in placed if _count_real(one, samples)[0] == 0 or _fill(one) is None]
    result = []
    for one in placed:
        fill = _fill(one)
        if fill is None or one in clear:
            continue
        num_real, places = _count_real(one, samples)
        marker = _marker(one, leaves, others) or next(
            (other.batch_field for other in clear if sorted(other.lengths) == sorted(one.lengths)),
            None,
        )
        result.append(
            PaddedField(
                field=one.field,
                batch_field=one.batch_field,
                lengths=(min(one.lengths), max(one.lengths)),
                fill=_shown(fill),
                num_padded=int((~one.mask).sum()),
                num_real=num_real,
                real_ids=tuple(ids[place] for place in places),
                marked_by=marker,
            )
        )
    return tuple(result)


def _place(field: str, arrays: Sequence[Array], name: str, leaf: Array) -> _Placed | None:
    """Returns how a leaf of the batch holds the arrays; None if it does not."""
    inner = arrays[0].shape[1:]
    if leaf.ndim == len(inner) + 3 and 1 in {leaf.shape[1], leaf.shape[-1]}:  # an axis for a single channel
        leaf = leaf[:, 0] if leaf.shape[1] == 1 else leaf[..., 0]
    if leaf.ndim != len(inner) + 2 or leaf.shape[2:] != inner:
        return None
    for batch_first in (True, False):
        rows = list(leaf if batch_first else np.swapaxes(leaf, 0, 1))
        if len(rows) != len(arrays):
            continue
        for at_end in (False, True):
            lengths = _lengths(rows, arrays, at_end=at_end)
            if lengths is not None and min(lengths) < len(rows[0]):
                return _Placed(field, name, rows, lengths, at_end)
    return None


def _lengths(rows: Sequence[Array], arrays: Sequence[Array], *, at_end: bool) -> list[int] | None:
    """The length of the sample that stands in each row; each sample stands in one row. None: they do not.

    The order of the samples is tried first: a short sample may look like the beginning of another one that is filled up.
    """

    def size_in(row: Array, array: Array) -> int | None:
        size = min(len(array), len(row))
        here, part = row[len(row) - size :] if at_end else row[:size], array[:size]
        is_same = np.array_equal(here, part) or (part.dtype.kind == "f" and np.allclose(here, part, atol=1e-6))
        return size if is_same else None

    in_order = [size_in(row, array) for row, array in zip(rows, arrays, strict=True)]
    if None not in in_order:
        return [size for size in in_order if size is not None]
    left = sorted(range(len(arrays)), key=lambda place: -len(arrays[place]))  # the longest that fits is meant
    found = []
    for row in rows:
        sizes = ((place, size_in(row, arrays[place])) for place in left)
        match = next(((place, size) for place, size in sizes if size is not None), None)
        if match is None:
            return None
        left.remove(match[0])
        found.append(match[1])
    return found


def _fill(one: _Placed) -> Array | None:
    """The value that all added places hold; None if they differ or there are none."""
    added = one.added()
    return added[0] if len(added) and (added == added[0]).all() else None


def _count_real(one: _Placed, samples: Sequence[Any]) -> tuple[int, list[int]]:
    """How often the fill value is a real value, and in which samples."""
    fill = _fill(one)
    counts = []
    for array in varying_fields(samples)[one.field]:
        same = array == fill
        counts.append(int(same.reshape(len(array), -1).all(axis=1).sum()) if len(array) else 0)
    return sum(counts), [place for place, number in enumerate(counts) if number]


def _marker(one: _Placed, leaves: Sequence[tuple[str, Array]], others: Sequence[tuple[str, Any]]) -> str | None:
    """The part of the batch that tells real places from added ones: by its values, or, failing that, by its name."""
    size = len(one.rows[0])
    for name, leaf in leaves:
        if name != one.batch_field and (_is_mask(leaf, one.lengths, size) or _is_lengths(leaf, one.lengths, size)):
            return name
    singles = [int(value) for name, value in others if isinstance(value, (int, np.integer))]
    if len(singles) >= len(one.lengths) and set(one.lengths) <= set(singles):
        return "lengths"
    for name, _ in others:
        words = name.lower().replace(".", "_").split("_")
        if name != one.batch_field and any(word in _TELLING_WORDS or "mask" in word for word in words):
            return name
    return None


def _is_mask(leaf: Array, lengths: Sequence[int], size: int) -> bool:
    """True for two values that part each row in two, with as many places before, or behind, as the samples are long."""
    if leaf.ndim == 3 and leaf.shape[-1] == 1:
        leaf = leaf[..., 0]
    if leaf.ndim > 2 and leaf.dtype.kind == "b":  # a mask over pairs of places
        return bool(leaf.shape[0] == len(lengths) and leaf.shape[-1] == size)
    for candidate in (leaf, leaf.T):
        if candidate.shape == (len(lengths), size):
            values = np.unique(candidate)
            if len(values) == 2 and any(_parts(candidate == value, lengths) for value in values):
                return True
    return False


def _parts(there: npt.NDArray[np.bool_], lengths: Sequence[int]) -> bool:
    at_most_once = (np.diff(there.astype(np.int8), axis=1) != 0).sum(axis=1).max(initial=0) <= 1
    return bool(at_most_once) and sorted(there.sum(axis=1).tolist()) == sorted(lengths)


def _is_lengths(leaf: Array, lengths: Sequence[int], size: int) -> bool:
    """True for the lengths, also as shares of the whole, or for where each sample begins or ends; in any order."""
    flat = leaf.reshape(-1)
    if flat.dtype.kind == "f" and flat.shape == (len(lengths),):
        flat = np.sort(flat)
        return any(bool(np.allclose(flat, np.sort(lengths) / unit, rtol=1e-3)) for unit in (1, size))
    if flat.dtype.kind not in "iu" or not len(flat):
        return False
    wanted, total = sorted(lengths), sum(lengths)
    steps = (flat, np.diff(flat), np.diff(flat, append=total), np.diff(flat, prepend=0))
    return any(sorted(step.tolist()) == wanted for step in steps)


def _shown(fill: Array) -> str:
    if fill.ndim == 0:
        return f"{fill.item():g}" if fill.dtype.kind == "f" else str(fill.item())
    first = f"{fill.reshape(-1)[0]:g}"
    return f"[{first}]" if fill.size == 1 else f"[{first}, ...]"
