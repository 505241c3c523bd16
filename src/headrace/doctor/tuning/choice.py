"""The choice: the cheapest setting that certainly meets the need and delivers the same data. Pure: no clock, no loader.

feasible  = every bar is cleared: rate, waiting, memory, and the proof of the same data
present one feasible                    -> keep it
another is feasible                     -> the cheapest of them
none is feasible (or no need is known)  -> the cheapest of those as fast as the fastest, and what binds
the rounds cannot tell                  -> inconclusive, and why
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.cost import Cost

__all__ = ["Choice", "Contender", "Limits", "SameData", "bars", "choose"]

SameData = Literal["itself", "proven", "differs", "unproven"]
"""itself: the present setting. unproven: the comparison was not able to tell, or there was no time for it."""
ITSELF = Interval(1.0, 1.0)
MILLISECOND = 1e-3
"""A shorter wait is the hand-over of a batch and no starvation, however short the step is."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a setting may take. None: no limit."""

    memory_bytes: int | None = None
    """Of the whole process tree."""
    shm_bytes: int | None = None
    """Of shared memory, for batches on their way."""
    starved_share: float = 0.01
    """Steps that wait noticeably: one of a hundred may."""
    wait_share: float = 0.05
    """The wait that 99 of 100 steps stay within, as a part of the step."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A setting that was confirmed, with everything that speaks for and against it. None: not measured."""

    setting: Setting
    """What is changed of the present one."""
    cost: Cost
    supply_per_s: Interval
    """Rate of the loader alone: where it lies with 95 % confidence. Of rounds that no selection has seen."""
    ratio: Interval = ITSELF
    """Rate over that of the present setting, of the loop if there is a training step, else of the loader alone."""
    starved_share: float | None = None
    p99_wait_s: float | None = None
    step_s: float | None = None
    """Of the training step alone."""
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    same_data: SameData = "unproven"

    @property
    def middle(self) -> float:
        """Its speed, for a first ranking: the middle of the ratio on a logarithmic scale."""
        low, high = self.ratio.low, self.ratio.high
        return math.sqrt(low * high) if low > 0 and high < math.inf else 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to do, and why."""

    outcome: Literal["keep", "change", "inconclusive"]
    setting: Setting | None
    """The change to make; None: none."""
    meets_need: bool | None
    """Of what is kept or chosen; None: no need is known, or it cannot be told."""
    why: str
    """One clause in a user's words."""
    binding: tuple[str, ...] = ()
    """What keeps the chosen setting from meeting the need; empty: nothing does."""
    simpler: Setting | None = None
    """A cheaper setting that would meet the need as well as the present one, which is kept."""


def bars(one: Contender, need_per_s: float | None, limits: Limits) -> tuple[str, ...]:
    """Returns everything that keeps a setting from being feasible, in a user's words; none: it is feasible."""
    found = []
    if one.same_data == "differs":
        found.append("its data differ")
    elif one.same_data == "unproven":
        found.append("its data are not proven to be the same")
    found += _limit_bars(one, limits)
    if need_per_s is not None and one.supply_per_s.low < need_per_s:
        found.append(f"the loader alone surely gives {one.supply_per_s.low:,.0f}/s, {need_per_s:,.0f}/s are needed")
    if one.starved_share is not None and one.starved_share > limits.starved_share:
        found.append(f"{one.starved_share:.1%} of the steps wait for data, {limits.starved_share:.0%} may")
    if one.p99_wait_s is not None and one.step_s is not None:
        most_s = max(MILLISECOND, limits.wait_share * one.step_s)
        if one.p99_wait_s > most_s:
            found.append(
                f"one step in a hundred waits {1e3 * one.p99_wait_s:.3g} ms or more, {1e3 * most_s:.3g} ms may"
            )
    return tuple(found)


def _limit_bars(one: Contender, limits: Limits) -> list[str]:
    found = []
    for what, taken, limit in (
        ("memory", one.memory_bytes, limits.memory_bytes),
        ("shared memory", one.shm_bytes, limits.shm_bytes),
    ):
        if taken is not None and limit is not None and taken > limit:
            found.append(f"it takes {taken / 2**20:,.0f} MiB of {what}, {limit / 2**20:,.0f} MiB may be taken")
    return found


def choose(
    present: Contender,
    others: Sequence[Contender],
    *,
    need_per_s: float | None,
    limits: Limits,
    as_fast: Callable[[Contender, Contender], bool],
) -> Choice:
    """Chooses.

    Args:
        present: The setting as it is.
        others: Those that were confirmed beside it, in any order.
        need_per_s: Samples per second that the loader has to supply; None: not known, the fastest is looked for.
        limits: What a setting may take.
        as_fast: Says whether two settings are equally fast (an equivalence test, not a missing difference).
    """
    if need_per_s is None:
        return _fastest(present, others, None, limits, as_fast)
    feasible = sorted((one for one in others if not bars(one, need_per_s, limits)), key=_by_cost)
    own = bars(present, need_per_s, limits)
    if not own:
        simpler = next((one.setting for one in feasible if one.cost < present.cost), None)
        return Choice(outcome="keep", setting=None, meets_need=True, why="it meets the need", simpler=simpler)
    if not feasible:
        return _fastest(present, others, need_per_s, limits, as_fast)
    best = feasible[0]
    if _may_meet(present, need_per_s, limits):
        # A slightly better draw of the same speed is nothing to change a setting for.
        better = next((one for one in feasible if one.ratio.low > 1.0), None)
        if better is None:
            return Choice(
                outcome="inconclusive", setting=None, meets_need=None, why=f"it may meet the need or not: {own[0]}"
            )
        best = better
    return Choice(outcome="change", setting=best.setting, meets_need=True, why="the simplest that meets the need")


def _may_meet(present: Contender, need_per_s: float, limits: Limits) -> bool:
    """True if nothing but the width of its interval keeps the present setting from being feasible."""
    hopeful = dataclasses.replace(present, supply_per_s=Interval(present.supply_per_s.high, present.supply_per_s.high))
    return not bars(hopeful, need_per_s, limits)


def _fastest(
    present: Contender,
    others: Sequence[Contender],
    need_per_s: float | None,
    limits: Limits,
    as_fast: Callable[[Contender, Contender], bool],
) -> Choice:
    """The cheapest of those that are as fast as the fastest, of those that may be used at all."""
    usable = [one for one in others if one.same_data == "proven" and not _limit_bars(one, limits)]
    own_limits = _limit_bars(present, limits)
    entered = usable if own_limits else [present, *usable]
    meets_need = None if need_per_s is None else False
    binding = _binding(present, need_per_s, limits)
    if not entered:
        return Choice(outcome="inconclusive", setting=None, meets_need=meets_need, why=own_limits[0], binding=binding)
    fastest = max(entered, key=lambda one: (one.middle, *(-part for part in one.cost)))
    level = [one for one in entered if one is fastest or as_fast(one, fastest)]
    if any(one is present for one in level):
        cheaper = next((one.setting for one in sorted(level, key=_by_cost) if one.cost < present.cost), None)
        return Choice(
            outcome="keep",
            setting=None,
            meets_need=meets_need,
            why="nothing that was tried is faster" if others else "there is nothing to try",
            binding=binding,
            simpler=cheaper,
        )
    best = min(level, key=_by_cost)
    if not own_limits and best.ratio.low <= 1.0:
        sure = [one for one in level if one.ratio.low > 1.0]
        if not sure:
            why = "the rounds do not tell whether another setting is faster"
            return Choice(outcome="inconclusive", setting=None, meets_need=meets_need, why=why, binding=binding)
        best = min(sure, key=_by_cost)
    return Choice(
        outcome="change",
        setting=best.setting,
        meets_need=meets_need,
        why="the simplest of the fastest" if need_per_s is None else "nothing meets the need; this comes nearest",
        binding=_binding(best, need_per_s, limits),
    )


def _binding(one: Contender, need_per_s: float | None, limits: Limits) -> tuple[str, ...]:
    return () if need_per_s is None else bars(one, need_per_s, limits)


def _by_cost(one: Contender) -> tuple[Cost, float, str]:
    """Of two that cost the same the faster one; a name at last, so that the order of trials decides nothing."""
    return one.cost, -one.middle, one.setting.name
