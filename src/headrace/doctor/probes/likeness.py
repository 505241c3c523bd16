"""How much a field of a sample is like the file that it came from. Pure arithmetic on arrays.

Shapes: `stored` [H, W] or [H, W, C] as the file has it; `plane` [h, w], one number per pixel of the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["as_plane", "coarse_likeness", "distinct", "linear_likeness", "turned"]

Array = npt.NDArray[Any]

GRID = 8
"""Cells along each side of a coarse picture: enough to tell a picture from its quarter turn, blind to a small crop."""
FINE_GRID = 32
"""Cells along each side where values are compared: fine enough that one that wrapped around does not average out."""
PER_CELL = 16
"""Pixels along each side of a cell that are looked at."""
IN_PLACE = 0.9
"""Correlation from which on a field is taken for the whole picture, at whatever size."""
NUM_QUANTILES = 200
MAX_COMPARED = 200_000
"""Pixels compared one by one."""
MAX_DISTINCT = 256


def as_plane(array: Array) -> Array | None:
    """Returns one number per pixel of [H, W], [C, H, W] or [H, W, C]; None for anything else."""
    while array.ndim > 3 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 3:
        # The shorter end is the channels.
        array = (
            array.mean(axis=0)
            if array.shape[0] <= min(4, array.shape[-1])
            else (array.mean(axis=-1) if array.shape[-1] <= 4 else array[:, :0, 0])
        )
    if array.ndim != 2 or min(array.shape) < GRID:
        return None
    return array


def turned(stored: Array, orientation: int) -> Array:
    """Returns the picture as EXIF tag 0x0112 wants it shown. Source: Exif 2.3, table 6."""
    rows_first = {2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1]}
    if orientation < 5:
        return rows_first.get(orientation, stored)
    swapped = np.swapaxes(stored, 0, 1)
    return {5: swapped, 6: swapped[:, ::-1], 7: swapped[::-1, ::-1], 8: swapped[::-1]}[orientation]


def coarse_likeness(stored: Array, plane: Array) -> float | None:
    """Returns the correlation of two coarse pictures, the better of it and the mirrored one; None if one is flat."""
    if min(stored.shape[:2]) < GRID:
        return None
    stored = _thinned(stored, GRID)
    ours = stored.mean(axis=-1) if stored.ndim == 3 else stored
    first, second = _coarse(ours, GRID), _coarse(plane, GRID)
    return _best(_correlation(first, other) for other in (second, second[:, ::-1]))


def _thinned(picture: Array, size: int) -> Array:
    """Every so manieth row and column of a large picture [H, W] or [H, W, C]: enough for the mean of each cell."""
    rows, columns = (max(1, length // (size * PER_CELL)) for length in picture.shape[:2])
    return picture[::rows, ::columns]


def _coarse(plane: Array, size: int) -> Array:
    """Means over a grid of `size` x `size` cells."""
    plane = _thinned(plane, size)
    for axis in (0, 1):
        starts = np.arange(size) * plane.shape[axis] // size
        counts = np.diff(np.append(starts, plane.shape[axis]))
        sums = np.add.reduceat(plane, starts, axis=axis, dtype=float)
        plane = sums / (counts[:, None] if axis == 0 else counts[None, :])
    return plane


def linear_likeness(explanations: Mapping[str, Array], plane: Array) -> dict[str, float]:
    """Returns how far the field is a linear function of each explanation [H, W]: 1 = exactly, 0 = not, or one is flat.

    Pixel by pixel where the sizes agree; else cell by cell of a grid, which a resize changes little; and if the field
    is not like any of them in that way, by the quantiles of both, which a crop or a quarter turn changes little.
    """
    size = min(FINE_GRID, *plane.shape, *next(iter(explanations.values())).shape)
    found = {}
    for name, values in explanations.items():
        if values.shape == plane.shape:
            step = max(1, int(np.sqrt(plane.size / MAX_COMPARED)))
            ours, theirs = values[::step, ::step], plane[::step, ::step]
        else:
            ours, theirs = _coarse(values, size), _coarse(plane, size)
        found[name] = _best(_correlation(ours, view) for view in _mirrored(theirs)) or 0.0
    if max(found.values()) >= IN_PLACE:
        return found
    shares = np.linspace(0, 1, NUM_QUANTILES)
    field = np.quantile(_some(plane), shares)
    return {
        name: _correlation(np.quantile(_some(values), shares), field) or 0.0 for name, values in explanations.items()
    }


def _some(values: Array) -> Array:
    """Enough of the values for their distribution, from all over the picture."""
    return values.ravel()[:: max(1, values.size // MAX_COMPARED)]


def _mirrored(plane: Array) -> tuple[Array, ...]:
    return plane, plane[:, ::-1], plane[::-1], plane[::-1, ::-1]


def _best(found: Iterable[float | None]) -> float | None:
    return max((one for one in found if one is not None), default=None)


def _correlation(first: Array, second: Array) -> float | None:
    a, b = first.ravel().astype(float), second.ravel().astype(float)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return None if size <= 1e-12 or not np.isfinite(size) else float(a @ b) / size


def distinct(array: Array) -> Array | None:
    """Returns the distinct finite values in order; None if there are more than 256."""
    if array.dtype.kind == "b" or array.dtype == np.uint8:
        return np.flatnonzero(np.bincount(array.ravel().astype(np.uint8), minlength=256))
    flat = array.ravel()
    # A few thousand values of a photograph show that there are too many, without sorting all of them.
    if np.unique(flat[:: max(1, flat.size // 4096)]).size > MAX_DISTINCT:
        return None
    found = np.unique(flat[np.isfinite(flat)] if array.dtype.kind == "f" else flat)
    return found if found.size <= MAX_DISTINCT else None
