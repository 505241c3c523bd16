"""Infers shapes: which sizes are fixed, which differ, and which of those are one and the same dim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.contract.field import Dim
from headrace.contract.view import ValueView

__all__ = ["infer_shapes"]

MIN_SIZES = 3
"""Different sizes that two fields must have shared before their dims get one name; two sizes agree too easily by chance."""
USUAL_CHANNELS = frozenset({1, 3, 4})
"""Channels of images: gray, colour, colour with opacity. An axis this short among longer ones is the channel."""

_Sizes = tuple[int | None, ...]
"""Sizes of one axis over the samples that were looked at; None where the field is missing."""


def infer_shapes(
    columns: Mapping[str, Sequence[ValueView | None]],
) -> dict[str, tuple[tuple[Dim, ...] | None, str | None]]:
    """Returns (shape, axes) of each field.

    Args:
        columns: For each field its views over the samples; None where it is missing.

    Returns:
        Shape None for text, for what has no shape, and for fields whose number of axes differs. A size that is equal in
        all samples is fixed. Other axes get a name; axes of different fields share it if their sizes were equal in
        every sample and took at least `MIN_SIZES` values. Two axes of one field never share a name: images that happen
        to be square do not promise it.
    """
    shapes: dict[str, tuple[tuple[Dim, ...] | None, str | None]] = {}
    names: dict[_Sizes, list[tuple[str, set[str]]]] = {}
    taken: set[str] = set()
    for field, column in columns.items():
        sizes = _sizes_by_axis(column)
        if sizes is None:
            shapes[field] = None, None
            continue
        axes = _guess_axes(sizes)
        dims: list[Dim] = []
        for axis, over_samples in enumerate(sizes):
            seen = {size for size in over_samples if size is not None}
            if len(seen) == 1:
                dims.extend(seen)
                continue
            wanted = axes[axis] if axes else _usual_name(axis, sizes)
            dims.append(_name(over_samples, wanted, field, names, taken, is_sure=len(seen) >= MIN_SIZES))
        shapes[field] = tuple(dims), axes
    return shapes


def _sizes_by_axis(column: Sequence[ValueView | None]) -> list[_Sizes] | None:
    """Returns for each axis its size in each sample; None if the field has no shape, or not one number of axes."""
    views = [view for view in column if view is not None]
    shapes = {view.shape for view in views}
    if not views or None in shapes or any(view.kind in {"string", "bytes"} for view in views):
        return None
    ranks = {len(shape) for shape in shapes if shape is not None}
    if len(ranks) != 1:
        return None
    return [
        tuple(None if view is None or view.shape is None else view.shape[axis] for view in column)
        for axis in range(ranks.pop())
    ]


def _guess_axes(sizes: Sequence[_Sizes]) -> str | None:
    """Returns CHW or HWC if exactly one end of three axes is always as short as an image's channels."""
    if len(sizes) != 3:
        return None
    seen = [{size for size in over_samples if size is not None} for over_samples in sizes]
    is_channel = [axis <= USUAL_CHANNELS for axis in seen]
    is_long = [min(axis) > max(USUAL_CHANNELS) for axis in seen]
    if is_channel[0] and is_long[1] and is_long[2]:
        return "CHW"
    return "HWC" if is_channel[2] and is_long[0] and is_long[1] else None


def _usual_name(axis: int, sizes: Sequence[_Sizes]) -> str:
    """Returns what people call such an axis: T in sequences, H and W in pictures, D0, D1, ... elsewhere."""
    num_varying = sum(len({size for size in over_samples if size is not None}) > 1 for over_samples in sizes)
    if len(sizes) == 1 or (len(sizes) == 2 and num_varying == 1):
        return "T"
    return "HW"[axis] if len(sizes) == 2 else f"D{axis}"


def _name(
    over_samples: _Sizes,
    wanted: str,
    field: str,
    names: dict[_Sizes, list[tuple[str, set[str]]]],
    taken: set[str],
    *,
    is_sure: bool,
) -> str:
    """Returns the name of an axis: that of another field with the same sizes, else a new one."""
    known = names.setdefault(over_samples, [])
    for name, owners in known:
        if is_sure and field not in owners:
            owners.add(field)
            return name
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}{number}", number + 1
    taken.add(name)
    known.append((name, {field}))
    return name
