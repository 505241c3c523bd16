"""Successive halving: all settings run once, the better half once more, and so on. For ranking only.

What is measured here chose the finalists, and so says nothing about how good they are: their rounds are run afresh.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.cost import Cost
from headrace.doctor.tuning.trial import Trial

__all__ = ["ENOUGH", "Ranked", "halve", "ranked"]

ENOUGH = 1.1
"""A setting that supplies so many times the need in a trial is enough; that another supplies more is no merit."""
LEVEL = math.log(1.05)
"""Settings within 5 % of each other count as equal in a trial: the cheaper one is the better one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A setting, and what its trials gave."""

    setting: Setting
    cost: Cost
    rates_per_s: tuple[float, ...] = ()
    failure: str = ""

    @property
    def rate_per_s(self) -> float:
        """Median; 0: it failed."""
        return statistics.median(self.rates_per_s) if self.rates_per_s else 0.0


def ranked(found: Sequence[Ranked], need_per_s: float | None) -> list[Ranked]:
    """Returns them in the order of merit: enough at least cost; those that fail last.

    With a need, all that supply enough are equal in rate. Without, steps of 5 % below the fastest are, so that a cheaper
    setting is not passed over for noise.
    """
    fastest = max((one.rate_per_s for one in found), default=0.0)
    top = fastest if need_per_s is None else min(fastest, need_per_s * ENOUGH)

    def merit(one: Ranked) -> tuple[float, Cost, float, str]:
        if not one.rate_per_s:
            return math.inf, one.cost, 0.0, one.setting.name
        behind = max(math.log(top / one.rate_per_s), 0.0)
        return math.floor(behind / LEVEL), one.cost, -one.rate_per_s, one.setting.name

    return sorted(found, key=merit)


def halve(
    arms: Sequence[Ranked],
    measure: Callable[[Setting], Trial],
    *,
    need_per_s: float | None,
    keep: int,
    has_time: Callable[[], bool] = lambda: True,
) -> list[Ranked]:
    """Returns all arms in the order of merit, with their rounds.

    Args:
        arms: Settings; rates that they have already count.
        measure: Runs one round.
        need_per_s: Samples per second; None: not known.
        keep: Ends when so many are left.
        has_time: Asked before each round; False ends it, and what was measured so far ranks.
    """
    known = {one.setting: one for one in arms}
    alive = list(known)
    while alive:
        for setting in alive:
            if not has_time():
                return ranked(list(known.values()), need_per_s)
            known[setting] = _with_round(known[setting], measure(setting))
        order = ranked([known[setting] for setting in alive if known[setting].rates_per_s], need_per_s)
        if len(alive) <= keep:
            break
        alive = [one.setting for one in order[: max(keep, len(alive) // 2)]]
    return ranked(list(known.values()), need_per_s)


def _with_round(one: Ranked, trial: Trial) -> Ranked:
    if trial.rate_per_s is None:
        return dataclasses.replace(one, failure=trial.failure or "it gave no rate", rates_per_s=())
    return dataclasses.replace(one, rates_per_s=(*one.rates_per_s, trial.rate_per_s))
