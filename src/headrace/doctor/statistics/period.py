"""The period test: does every n-th batch of n workers differ from the others?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Period", "period"]

NUM_PERMUTATIONS = 999
"""The least p is 0.001."""
FEWEST_TURNS = 8
"""In fewer turns of all workers, two workers have nearly the same ranks by chance too often."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """How much a series in the order of batches repeats with the number of workers."""

    lag: int
    """The number of workers."""
    autocorrelation: float
    """Of the ranks of the series at this lag, -1 to 1; near 1: the same worker is slow (or fast) in every turn."""
    p: float
    """How often the same values give such an autocorrelation if each turn's values are dealt to the workers at
    random."""
    means: tuple[float, ...]
    """Mean of the series for each place in the turn, that is for each worker from the first batch on; in the series'
    own unit."""

    @property
    def slowest(self) -> int:
        """The place in the turn with the greatest mean."""
        return int(np.argmax(self.means))


def period(series: Sequence[float], *, num_workers: int, seed: int = 0) -> Period | None:
    """Tests whether the places in the turn of the workers differ, by the autocorrelation at a lag of one turn.

    Batches are delivered in order, batch i by worker i mod n, so one slow worker shows as a period of n. What the
    series is decides what the period means:

    * Seconds that a batch took in its worker: one slow worker, or a place in the turn that always gets heavier samples.
    * Waits of the loop: that too, but healthy workers that keep step give the same picture. They finish together, the
      loop waits once and takes n batches at once. Waits alone cannot tell the two apart.

    Values are dealt anew within each turn only, so trends over the round do not count. Ranks are used, as waits have
    long tails.

    Args:
        series: One value per batch in the order of delivery; a last turn that is not complete is left out.
        num_workers: The lag.
        seed: Of the permutations.

    Returns:
        None if there are fewer than two workers or eight turns.

    Source: permutation test of the lag-n autocorrelation; restricted permutations: P. Good, Permutation Tests, 2000,
        section 11.
    """
    num_turns = len(series) // num_workers if num_workers > 1 else 0
    if num_turns < FEWEST_TURNS:
        return None
    turns = np.asarray(series, dtype=np.float64)[: num_turns * num_workers].reshape(num_turns, num_workers)
    ranks = _ranks(turns)
    seen = float(_autocorrelation(ranks))
    draws = np.random.default_rng(seed)
    dealt = np.fromiter(
        (_autocorrelation(draws.permuted(ranks, axis=1)) for _ in range(NUM_PERMUTATIONS)), np.float64, NUM_PERMUTATIONS
    )
    return Period(
        lag=num_workers,
        autocorrelation=seen,
        p=float((1 + np.count_nonzero(dealt >= seen - 1e-12)) / (1 + NUM_PERMUTATIONS)),
        means=tuple(turns.mean(axis=0).tolist()),
    )


def _ranks(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks among all values, equal values sharing their mean rank."""
    _, places, counts = np.unique(turns, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places].reshape(turns.shape))


def _autocorrelation(turns: NDArray[np.float64]) -> float:
    """The correlation of each value with that of the same worker one turn later; 0 if all values are equal."""
    centred = turns - turns.mean()
    power = float((centred**2).mean())
    return float((centred[1:] * centred[:-1]).mean()) / power if power else 0.0
