"""The exact sign-flip test: how often would fair coins give log ratios as one-sided as these?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["p_different", "p_same"]

MOST_EXACT = 20
"""Up to so many blocks all 2**n sign patterns are tried (8 MiB); of more, a sample of them."""
NUM_SAMPLED = 99_999
"""Sign patterns drawn where there are too many to try: the error of a p of 0.05 is 0.0007."""
ROUNDING = 1e-12
"""Two sums of the same numbers in another order are equal if they differ by less than this share of their size."""


def p_different(log_ratios: NDArray[np.float64], *, seed: int = 0) -> float:
    """The two-sided p of "the settings are equally fast".

    Exact if the schedule was drawn as in schedule.py, for any distribution of the noise: under the null hypothesis
    each block's sign is a fair coin. Never below 2 / 2**n for n blocks.

    Args:
        log_ratios: One per block, (n,).
        seed: For the sign patterns that are drawn if there are more than 20 blocks.

    Source: R. A. Fisher, The Design of Experiments, 1935, section 21.
    """
    sums, observed = _sums(log_ratios, seed)
    return _share(np.abs(sums), abs(observed), log_ratios)


def p_same(log_ratios: NDArray[np.float64], margin: float, *, seed: int = 0) -> float:
    """The p of "the settings differ by `margin` or more", the null hypothesis of an equivalence test.

    Two one-sided sign-flip tests, around -margin and around +margin; the greater p counts (TOST, Schuirmann 1987).
    Small: they are equally fast within the margin.

    Args:
        log_ratios: One per block, (n,).
        margin: Log ratio, above 0; infinite: every setting is within it.
        seed: As in `p_different`.
    """
    if not np.isfinite(margin):
        return 0.0
    return max(_p_positive(log_ratios + margin, seed), _p_positive(margin - log_ratios, seed))


def _p_positive(values: NDArray[np.float64], seed: int) -> float:
    """The one-sided p of "the values lie around zero or below"."""
    sums, observed = _sums(values, seed)
    return _share(sums, observed, values)


def _sums(values: NDArray[np.float64], seed: int) -> tuple[NDArray[np.float64], float]:
    """The sums under all sign patterns (or a sample and the observed one), and the observed sum."""
    values = values[np.argsort(np.abs(values), kind="stable")]  # the order of blocks does not reach the last digit
    observed = float(values.sum())
    if values.size > MOST_EXACT:
        signs = np.random.default_rng(seed).integers(0, 2, size=(NUM_SAMPLED, values.size), dtype=np.int8) * 2 - 1
        return np.append(signs @ values, observed), observed
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums, observed


def _share(sums: NDArray[np.float64], observed: float, values: NDArray[np.float64]) -> float:
    """The share of sums that are at least as great as the observed one."""
    return float(np.mean(sums >= observed - ROUNDING * np.abs(values).sum()))
