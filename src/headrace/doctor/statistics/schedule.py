"""The order of rounds: mirrored blocks in random order, with the present setting entered twice.

A block runs every arm once in random order and once more in the reverse of it: for two arms ABBA or BAAB, for more
A C B B C A and so on. Why so:

* Every arm's two rounds lie around the middle of the block, so a linear drift of the machine cancels in each ratio
  exactly.
* Before a block begins, each order and the order with two arms exchanged are equally likely. If the two settings are
  equally fast, the sign of their log ratio is therefore a fair coin in every block, whatever the machine did meanwhile:
  the sign-flip test (signs.py) is exact, and log ratios are symmetric around the effect. Orders are drawn anew for each
  block; forcing "half of them ABBA" would make coins depend on each other.
* All candidates share the rounds of the present setting: k candidates cost 2 (k + 1) rounds in a block, not 4 k.

The noise floor needs pairs of equal settings (A/A). Comparing the two rounds of A inside ABBA is not the same thing:
they are single rounds (their difference varies twice as much as a ratio of means of two), and in ABBA they lie three
rounds apart, so drift does not cancel. Therefore the present setting is entered a second time, as the *control* arm.
Its ratio to the first has exactly the distribution that the ratio of an equally fast candidate would have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

__all__ = ["Slot", "fewest_blocks", "num_rounds", "schedule"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One place in the schedule: which setting runs as part of which block."""

    setting: str
    block: int
    """Counts from 0. A setting that is compared has two rounds per block."""
    is_control: bool = False
    """True for the second entry of the present setting, which measures the noise floor."""


def schedule(present: str, candidates: Sequence[str], *, num_blocks: int, seed: int) -> list[Slot]:
    """Puts the rounds of a comparison in an order in which neither drift nor place favours a setting.

    Args:
        present: The setting that candidates are compared with; it is entered twice.
        candidates: None: only the noise floor is measured.
        num_blocks: At least `fewest_blocks(len(candidates))`, or no difference can be told from chance.
        seed: Equal seeds give equal orders.

    Returns:
        `num_rounds(...)` slots in the order in which they are to run.
    """
    settings = [present, *candidates]
    if len(set(settings)) < len(settings):
        raise ValueError(f"settings must have different names, got {', '.join(settings)}")
    arms = [(present, True), *((setting, False) for setting in settings)]
    draws = np.random.default_rng(seed)
    slots = []
    for block in range(num_blocks):
        there = draws.permutation(len(arms))
        for arm in (*there, *there[::-1]):
            setting, is_control = arms[arm]
            slots.append(Slot(setting=setting, block=block, is_control=is_control))
    return slots


def num_rounds(num_candidates: int, num_blocks: int) -> int:
    """How many rounds a schedule has: in every block two of each candidate, of the present setting and its control."""
    return 2 * (num_candidates + 2) * num_blocks


def fewest_blocks(num_candidates: int, *, significance: float = 0.05) -> int:
    """The fewest blocks with which every candidate could be told from the present setting at all.

    Of n blocks the sign-flip test gives no p below 2 / 2**n, and Holm's correction multiplies the smallest by the
    number of candidates: 6 blocks for one candidate (p = 0.031), 7 for two and three.
    """
    num_blocks = 1
    while max(num_candidates, 1) * 2 / 2**num_blocks > significance:
        num_blocks += 1
    return num_blocks
