"""Which part of a picture a random resized crop takes, and how much smaller the decoder may make it. Arithmetic only."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

__all__ = ["Box", "draw_box", "reduction"]

NUM_TRIES = 10
"""Draws before the fallback; torchvision's number."""


class Box(NamedTuple):
    """A part of a picture, in whole pixels; right and bottom are the first ones outside."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Columns."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Rows."""
        return self.bottom - self.top


def draw_box(
    width: int, height: int, scale: tuple[float, float], ratio: tuple[float, float], rng: np.random.Generator
) -> Box:
    """Returns the part to take from a picture of that size.

    Its area is a share of the picture's drawn uniformly from `scale`, and the logarithm of its aspect (width by
    height) uniform in that of `ratio`, so that 3/4 and 4/3 are equally likely; its place is uniform among those where
    it fits. What does not fit is drawn again; after ten tries it is the largest centred part of an allowed aspect.

    Source: Szegedy et al., Going deeper with convolutions (CVPR 2015), section 6; the fallback as in torchvision's
    `RandomResizedCrop`, whose distribution this is. The draws themselves are other ones.
    """
    log_ratio = (math.log(ratio[0]), math.log(ratio[1]))
    for _ in range(NUM_TRIES):
        area = width * height * rng.uniform(*scale)
        aspect = math.exp(rng.uniform(*log_ratio))
        columns, rows = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < columns <= width and 0 < rows <= height:
            top = int(rng.integers(0, height - rows + 1))
            left = int(rng.integers(0, width - columns + 1))
            return Box(left, top, left + columns, top + rows)
    aspect = width / height
    columns, rows = width, height
    if aspect < ratio[0]:
        rows = min(height, max(1, round(width / ratio[0])))
    elif aspect > ratio[1]:
        columns = min(width, max(1, round(height * ratio[1])))
    left, top = (width - columns) // 2, (height - rows) // 2
    return Box(left, top, left + columns, top + rows)


def reduction(box: Box, size: tuple[int, int]) -> int:
    """Returns how many times smaller a JPEG may be decoded: 1, 2, 4 or 8, so that the part stays at least `size`.

    Args:
        box: The part that is taken.
        size: (height, width) of the result.
    """
    room = min(box.height // size[0], box.width // size[1])
    return max(step for step in (1, 2, 4, 8) if step == 1 or step <= room)
