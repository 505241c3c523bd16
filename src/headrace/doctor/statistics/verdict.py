"""The verdict on a candidate: same, faster, slower, or inconclusive together with what would settle it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

from headrace.doctor.statistics.drift import Drift
from headrace.doctor.statistics.holm import holm
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.noise import NoiseFloor
from headrace.doctor.statistics.pairs import Effect, Pairs, bootstrap_effect
from headrace.doctor.statistics.schedule import fewest_blocks
from headrace.doctor.statistics.signs import p_different, p_same
from headrace.doctor.statistics.student import t_quantile

__all__ = ["Settling", "Verdict", "judge"]

SIGNIFICANCE = 0.05
"""The chance that is taken, over all candidates together, of calling equal settings different, and of the reverse."""
LEAST_MARGIN = 0.02
"""A difference below 2 % is nothing that a setting is changed for."""
WIDEST_MARGIN = 0.05
"""A difference of 5 % is one that people act on; where noise could hide it, nothing is called the same."""
MOST_BLOCKS = 500
"""Where the search for the number of blocks gives up: nobody waits longer."""

Outcome = Literal["same", "faster", "slower", "inconclusive"]
Reason = Literal["few blocks", "noise", "drift"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """What would turn "inconclusive" into a verdict."""

    reason: Reason
    """few blocks: no result could be told from chance. noise: the interval reaches over the margin. drift: the machine
    changed."""
    more_blocks: int | None
    """About how many further blocks would do if they turn out like these (in simulations they did in half to nine of
    ten cases); 0: all of them once more, on a steady machine; None: no number up to 500, as the effect lies at the
    margin or the noise is too great."""
    more_s: float | None
    """The same in seconds."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What can be said about a candidate's speed."""

    outcome: Outcome
    """Of the candidate: `faster` than the present setting by more than the margin, `slower`, the `same` within it, or
    unknown."""
    ratio: float
    """Estimated rate of the candidate over the rate of the present setting."""
    ratio_interval: Interval
    """Holds the true ratio with 95 % confidence."""
    margin: float
    """The greatest ratio that counts as the same, 1.02 or the noise floor's; its reciprocal is the least."""
    p_different: float
    """Sign-flip p of "equally fast", corrected for the number of candidates (Holm)."""
    p_same: float
    """Sign-flip p of "different by the margin or more", corrected likewise."""
    num_blocks: int
    settling: Settling | None
    """None: settled."""


def judge(
    candidates: Mapping[str, Pairs],
    *,
    floor: NoiseFloor,
    drift: Drift | None,
    block_s: float,
    least_margin: float = LEAST_MARGIN,
    seed: int = 0,
) -> dict[str, Verdict]:
    """Judges every candidate against the present setting.

    The margin is the noise floor, or `least_margin` if that is greater. A candidate is *different* if the 95 % interval
    lies outside the margin; it is the *same* if the 90 % interval lies inside it (two one-sided tests at 5 %,
    Schuirmann 1987) and the margin is at most 5 %. Both need the exact sign-flip test to agree after Holm's correction:
    the interval says how large, the test how sure. A difference is not claimed if the machine drifted, beyond chance,
    by more than half of it; sameness is not if it drifted by more than the margin. Drift that is linear cancels inside
    blocks, but whoever drifts that much may have changed in other ways.

    Args:
        candidates: Their pairs against the present setting, each with at least one block.
        floor: From the control in the same schedule.
        drift: Of the present setting; None: unknown, not looked at.
        block_s: Seconds that a block takes, all its rounds and their start-up; for the time that further blocks would
            need.
        least_margin: As a share, above 0.
        seed: Of the bootstrap; equal seeds give equal verdicts, whatever the order of blocks.

    Returns:
        One verdict per candidate, in the same order.
    """
    least = math.log1p(least_margin)
    margin = max(floor.bound_log, least)
    ps_different = holm([p_different(both.values, seed=seed) for both in candidates.values()])
    ps_same = holm([p_same(both.values, margin, seed=seed) for both in candidates.values()])
    verdicts = {}
    for (name, both), p_unequal, p_equal in zip(candidates.items(), ps_different, ps_same, strict=True):
        effect = bootstrap_effect(both, seed=seed)
        outcome = _outcome(effect, margin, least, p_unequal, p_equal)
        settling = None
        if outcome == "inconclusive":
            settling = _settling(effect, floor, least, len(candidates), block_s)
        elif drift is not None and drift.is_certain and abs(drift.total_log) > _bearable(effect, margin, outcome):
            outcome = "inconclusive"
            settling = Settling(reason="drift", more_blocks=0, more_s=effect.num_blocks * block_s)
        verdicts[name] = Verdict(
            outcome=outcome,
            ratio=effect.ratio,
            ratio_interval=effect.interval_95.exp(),
            margin=Interval(0.0, margin).exp().high,
            p_different=p_unequal,
            p_same=p_equal,
            num_blocks=effect.num_blocks,
            settling=settling,
        )
    return verdicts


def _outcome(effect: Effect, margin: float, least: float, p_unequal: float, p_equal: float) -> Outcome:
    """What interval and test agree on."""
    if effect.interval_95.lies_outside(margin) and p_unequal <= SIGNIFICANCE:
        return "faster" if effect.log > 0 else "slower"
    is_narrow = margin <= _widest(least)
    if is_narrow and effect.interval_90.lies_within(margin) and p_equal <= SIGNIFICANCE:
        return "same"
    return "inconclusive"


def _widest(least: float) -> float:
    """The widest margin within which "same" says something: 5 %, or what was asked for if that is more."""
    return max(math.log1p(WIDEST_MARGIN), least)


def _bearable(effect: Effect, margin: float, outcome: Outcome) -> float:
    """How much drift, as a log ratio, a settled outcome stands."""
    return margin if outcome == "same" else abs(effect.log) / 2


def _settling(effect: Effect, floor: NoiseFloor, least: float, num_candidates: int, block_s: float) -> Settling:
    """How many blocks the intervals would need if the true effect and the deviation were those seen."""
    fewest = fewest_blocks(num_candidates, significance=SIGNIFICANCE)
    more = next(
        (
            num - effect.num_blocks
            for num in range(max(effect.num_blocks + 1, fewest), MOST_BLOCKS + 1)
            if _would_settle(effect, floor, least, num)
        ),
        None,
    )
    if more is None and not math.isfinite(effect.deviation + floor.effect.deviation):
        more = max(fewest - effect.num_blocks, 1)  # one block shows no spread to forecast from: begin with the fewest
    return Settling(
        reason="few blocks" if effect.num_blocks < fewest else "noise",
        more_blocks=more,
        more_s=None if more is None else more * block_s,
    )


def _would_settle(effect: Effect, floor: NoiseFloor, least: float, num: int) -> bool:
    """True if Student's intervals of `num` blocks would probably lie outside or inside the margin of as many."""
    if not math.isfinite(effect.deviation + floor.effect.deviation):
        return False
    root = math.sqrt(num)
    one_sided = t_quantile(0.95, num - 1) / root
    # The control's mean is chance and becomes smaller as chance does; its interval likewise.
    lopsided = abs(floor.effect.log) * math.sqrt(floor.effect.num_blocks) / root
    margin = max(lopsided + one_sided * floor.effect.deviation, least)
    # Their mean will not be the one seen: it is granted to turn out worse, by as much as happens in one of five cases.
    unlucky = t_quantile(0.8, num - 1) / root * effect.deviation
    is_different = abs(effect.log) - unlucky - t_quantile(0.975, num - 1) / root * effect.deviation > margin
    is_same = abs(effect.log) + unlucky + one_sided * effect.deviation < margin <= _widest(least)
    return is_different or is_same
