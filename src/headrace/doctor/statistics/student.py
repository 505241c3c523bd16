"""Student's t distribution for whole degrees of freedom, without SciPy, which users need not have."""

from __future__ import annotations

import functools
import math

__all__ = ["t_quantile"]


@functools.cache
def t_quantile(probability: float, degrees: int) -> float:
    """The value that a t-distributed variable stays below with `probability`.

    Args:
        probability: Above 0.5 and below 1: the upper half; the lower half is its mirror image.
        degrees: Degrees of freedom, at least 1.

    Cost: about 100 evaluations of a series of `degrees` / 2 terms, once per pair of arguments.
    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4; inverted by bisection.
    """
    if not (0.5 < probability < 1 and degrees >= 1):
        raise ValueError(f"no t quantile for probability {probability} and {degrees} degrees of freedom")
    within = 2 * probability - 1
    low, high = 0.0, 1.0
    while _within(high, degrees) < within:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < within else (low, middle)
    return high


def _within(t: float, degrees: int) -> float:
    """The probability of a value between -t and t."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2
    term, total = (cosine, 0.0) if is_odd else (1.0, 0.0)
    # Powers of the cosine from 1 (odd) or 0 (even) to degrees - 2, each with the quotient of the two running products.
    for power in range(is_odd, degrees - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
