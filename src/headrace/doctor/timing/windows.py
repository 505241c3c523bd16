"""Which batches of a run are its steady part. Pure arithmetic.

    epoch 0    start | lead: workers warm up, the queue fills | ... steady ... | tail: producers have nothing left to do
    epoch 1    start | lead, unless workers run on            | ... steady ... | tail

A batch that is taken while others wait in a queue did not cost what it seems to: its work was done before the window
began. After as many batches as can be in flight, each batch that is taken was ordered while the loop ran.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headrace.doctor.timing.crew import Crew
from headrace.doctor.timing.timed import Steps, Window

__all__ = ["FEWEST_BATCHES", "Epoch", "change_point", "find_window", "lead_of"]

FEWEST_BATCHES = 5
"""A steady part of fewer says nothing."""
SHORT_FACTOR = 5
"""A window below so many times the batches in flight is told to be short: what the queue held at its ends may show."""
BLOCK = 5
"""Steps that are looked at together for a change, at least: those of one worker and the next are not independent."""
FEWEST_BLOCKS, MOST_BLOCKS = 8, 400
CERTAIN = 0.01
"""Probability by chance below which a change is believed."""
MATTERS = 0.02
"""A change by less, beyond how much later steps vary, is left in: the window would only become shorter."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One epoch's part of the steps."""

    first: int
    last: int
    """One behind its last batch."""
    num_left: float = 0.0
    """Batches that it had left when the loop left it; 0: it ended by itself; infinite: not known, or endless."""

    @property
    def is_whole(self) -> bool:
        """It was walked to its end."""
        return self.num_left == 0


def lead_of(crew: Crew, epoch: int) -> int:
    """Batches at the beginning of an epoch that are not steady."""
    if epoch:
        fresh = 0 if crew.is_kept else 2 * crew.num_workers
        return 1 if crew.runs_on else max(1, crew.in_flight + fresh)
    return max(crew.first_steps, crew.in_flight + 2 * crew.num_workers)


def find_window(steps: Steps, epochs: Sequence[Epoch], crew: Crew) -> tuple[Window | None, str]:
    """Returns the steady part of a run, and what is to be said about it.

    Args:
        steps: Every batch.
        epochs: All that were begun and delivered something, in order.
        crew: Who made the batches.

    Returns:
        (window, why). None: fewer than a handful of batches, and no whole epoch. An epoch too short to have a steady
        part counts as a whole, with its start; `why` says so.
    """
    bounds = np.append(np.asarray(steps.asked_s), steps.end_s)
    stretches = [stretch for number, epoch in enumerate(epochs) if (stretch := _stretch(number, epoch, crew))]
    if not stretches:
        return _whole_epochs(steps, epochs, bounds, lead_of(crew, 0))
    stretches = _without_warm_up(stretches, bounds, crew)
    stretches = [_in_turns(stretch, crew) for stretch in stretches]
    window = _window(steps, stretches, bounds)
    if window is None:
        return None, "the clock saw no time pass"
    why = ""
    if window.num_batches < SHORT_FACTOR * crew.in_flight:
        why = f"the steady part is short: {window.num_batches} batches, where {crew.in_flight} can be in flight"
    return window, why


def _stretch(number: int, epoch: Epoch, crew: Crew) -> tuple[int, int] | None:
    first = epoch.first + lead_of(crew, number)
    # Workers that run on have the next epoch to work for. `num_left` may be infinite.
    tail = 0 if crew.runs_on else max(0, crew.in_flight - int(min(epoch.num_left, crew.in_flight)))
    last = epoch.last - tail
    return (first, last) if last - first >= max(FEWEST_BATCHES, crew.num_workers) else None


def _whole_epochs(
    steps: Steps, epochs: Sequence[Epoch], bounds: NDArray[np.float64], lead: int
) -> tuple[Window | None, str]:
    whole = [epoch for epoch in epochs if epoch.is_whole]
    if len(whole) > 1 and whole[0].first == 0:
        whole = whole[1:]  # the first one imports, opens and compiles
    if not whole:
        num = len(steps.asked_s)
        told = f"too few batches for a steady part: {num} in all, and the first {lead} belong to the start"
        return None, told if num else "no batch was delivered"
    window = _window(steps, [(epoch.first, epoch.last) for epoch in whole], bounds)
    if window is None:
        return None, "the clock saw no time pass"
    size = whole[0].last - whole[0].first
    counted = "1 whole epoch" if len(whole) == 1 else f"{len(whole)} whole epochs"
    return (
        dataclasses.replace(window, has_starts=True),
        f"an epoch of {size} batches is too short for a steady part: this is the rate of {counted}, starts included",
    )


def _without_warm_up(
    stretches: list[tuple[int, int]], bounds: NDArray[np.float64], crew: Crew
) -> list[tuple[int, int]]:
    """Leaves out what comes before a change of speed in the first half."""
    places = np.concatenate([np.arange(first, last) for first, last in stretches])
    cut = change_point(bounds[places + 1] - bounds[places], block=max(BLOCK, crew.num_workers))
    if cut == 0:
        return stretches
    begin = int(places[cut])
    kept = [(max(first, begin), last) for first, last in stretches if last > begin]
    fewest = max(FEWEST_BATCHES, crew.num_workers)
    return [stretch for stretch in kept if stretch[1] - stretch[0] >= fewest] or stretches


def change_point(steps_s: NDArray[np.float64], *, block: int) -> int:
    """Returns where the speed changed for good, in the first half of a series; 0: it did not, or by too little.

    Ranks are compared, so single slow steps, which a loader with a slow tail has all the time, are no change.

    Args:
        steps_s: Seconds per step, in order.
        block: Steps that belong together.

    Every place is tried, so chance is counted that many times (Bonferroni). That finds an early change too, which the
    usual test by the largest sum of ranks (A. N. Pettitt, 1979) overlooks.

    Source: B. Lausen and M. Schumacher, Maximally selected rank statistics, 1992.
    """
    block = max(block, steps_s.size // MOST_BLOCKS)
    num = steps_s.size // block
    if num < FEWEST_BLOCKS:
        return 0
    blocks = np.median(steps_s[: num * block].reshape(num, block), axis=1)
    before_it = np.arange(1, num)
    excess = np.abs(2 * np.cumsum(_ranks(blocks))[:-1] - before_it * (num + 1))
    deviation = np.sqrt(before_it * (num - before_it) * (num + 1) / 3)
    if (num - 1) * math.erfc(float((excess / deviation).max()) / math.sqrt(2)) > CERTAIN:
        return 0
    spread = [_spread(blocks[:cut]) + _spread(blocks[cut:]) for cut in range(1, num)]
    cut = int(np.argmin(spread)) + 1
    before = float(np.median(blocks[:cut]))
    low, high = np.quantile(blocks[cut:], (0.1, 0.9))
    # A speed that comes back later is not a beginning: it is how this loader is.
    comes_back = low * (1 - MATTERS) <= before <= high * (1 + MATTERS)
    return cut * block if cut <= num // 2 and not comes_back else 0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 1; equal values have the mean of theirs."""
    ranks = np.empty(values.size)
    ranks[values.argsort(kind="stable")] = np.arange(1, values.size + 1)
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = np.bincount(which, weights=ranks) / counts
    return means[which]


def _spread(values: NDArray[np.float64]) -> float:
    return float(np.abs(values - np.median(values)).sum())


def _in_turns(stretch: tuple[int, int], crew: Crew) -> tuple[int, int]:
    """Cut at the front to whole turns of all workers, which deliver in turn: a window then begins and ends alike."""
    first, last = stretch
    turn = max(1, crew.num_workers)
    return last - (last - first) // turn * turn, last


def _window(steps: Steps, stretches: list[tuple[int, int]], bounds: NDArray[np.float64]) -> Window | None:
    seconds = float(sum(bounds[last] - bounds[first] for first, last in stretches))
    if seconds <= 0:
        return None
    return Window(
        first=stretches[0][0],
        last=stretches[-1][1],
        seconds=seconds,
        num_samples=sum(sum(steps.num_samples[first:last]) for first, last in stretches),
        stretches=tuple(stretches),
    )
