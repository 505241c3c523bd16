"""The slopes between all pairs of points: what Theil-Sen estimates take the median of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["slopes_between"]


def slopes_between(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns the slopes of all pairs of points, smallest first; pairs at the same place are left out.

    Their median is the slope of Theil and Sen, which up to 29 % of wild points do not move far. Empty if no two points
    lie at different places. Takes memory by the square of the number of points.

    Source: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, 1968.
    """
    first, second = np.triu_indices(x.size, k=1)
    gaps, rises = x[second] - x[first], y[second] - y[first]
    is_apart = gaps != 0
    return np.sort(rises[is_apart] / gaps[is_apart])
