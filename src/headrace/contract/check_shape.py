"""Holds a shape against the declared dims, and says which way axes were swapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.contract.breach import Breach
from headrace.contract.field import Dim, Field, shape_text

__all__ = ["Sizes", "check_shape"]

MAX_CHANNELS = 4
"""Most channels that images on disk have (RGBA); only used to say which way axes were swapped."""

Sizes = dict[str, tuple[int, str]]
"""Size of each named dim met so far, with the field where it was met first."""


def check_shape(field: Field, shape: tuple[int, ...] | None, sizes: Sizes) -> Iterator[Breach]:
    """Yields what is wrong with a shape; notes the size of each named dim in `sizes`."""
    dims = field.shape or ()
    if shape is None or not _fits(dims, shape):
        found = "no shape" if shape is None else f"shape {shape_text(shape)}"
        hint = None if shape is None else _axes_hint(field, shape)
        yield _breach(field, f"shape {shape_text(dims)}", found, hint)
        return
    hint = _axes_hint(field, shape)
    if hint is not None:
        yield _breach(field, f"axes {field.axes}", f"shape {shape_text(shape)}", hint)
        return
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, str):
            known, owner = sizes.setdefault(dim, (size, field.name))
            if known != size:
                yield _breach(field, f"{dim} = {known} as in field {owner}", f"{dim} = {size}")


def _fits(dims: Sequence[Dim], shape: Sequence[int]) -> bool:
    """True if the number of axes and every fixed size are as declared."""
    return len(dims) == len(shape) and all(
        isinstance(dim, str) or dim == size for dim, size in zip(dims, shape, strict=True)
    )


def _axes_hint(field: Field, shape: tuple[int, ...]) -> str | None:
    """Says which axis to move if the declared axes stand in another order; None if that explains nothing.

    Only whole rotations are tried, since those are the two conventions: channels first and channels last.
    """
    axes, dims = field.axes, field.shape
    if axes is None or dims is None or len(axes) != len(shape) or len(axes) < 2:
        return None
    for moved, order, advice in (
        (shape[-1:] + shape[:-1], axes[1:] + axes[:1], "move the last axis first"),
        (shape[1:] + shape[:1], axes[-1:] + axes[:-1], "move the first axis last"),
    ):
        explains = not _fits(dims, shape) and _fits(dims, moved)
        if explains or _is_channel_misplaced(axes, dims, shape, moved):
            return f"axes look like {order}: {advice}"
    return None


def _is_channel_misplaced(axes: str, dims: Sequence[Dim], shape: Sequence[int], moved: Sequence[int]) -> bool:
    """True if an image's number of channels is not fixed, is odd where it stands, and is usual after the move."""
    if sorted(axes) != ["C", "H", "W"] or not _fits(dims, shape):
        return False
    place = axes.index("C")
    others = [size for axis, size in enumerate(moved) if axis != place]
    return (
        isinstance(dims[place], str)
        and shape[place] > MAX_CHANNELS
        and 0 < moved[place] <= MAX_CHANNELS
        and min(others) > MAX_CHANNELS
    )


def _breach(field: Field, expected: str, found: str, hint: str | None = None) -> Breach:
    return Breach(sample_id=None, field=field.name, expected=expected, found=found, hint=hint)
