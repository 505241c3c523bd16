"""The finalists beside the present setting, in interleaved mirrored blocks with a control: how many, and what they say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from headrace.doctor.statistics.comparison import Comparison, compare
from headrace.doctor.statistics.pairs import pairs
from headrace.doctor.statistics.rounds import Round
from headrace.doctor.statistics.schedule import fewest_blocks, num_rounds, schedule
from headrace.doctor.statistics.verdict import Outcome, judge
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.facts import includes
from headrace.doctor.tuning.trial import Trial

__all__ = ["Confirmed", "Plan", "confirm", "plan"]

MOST_FINALISTS = 3
MOST_BLOCKS = 9
"""More blocks narrow an interval by less than people notice."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What fits into the time that is left."""

    num_finalists: int
    """0: not even one can be told from the present setting."""
    num_blocks: int


def plan(num_wanted: int, *, left_s: float, round_s: float) -> Plan:
    """Returns how many settings can be confirmed: as many as wanted, at most three, of which each can still be told apart.

    Args:
        num_wanted: Settings that are worth it.
        left_s: Seconds.
        round_s: That one round takes, with its start.
    """
    for number in range(min(num_wanted, MOST_FINALISTS), 0, -1):
        fewest = fewest_blocks(number)
        blocks = next(
            (blocks for blocks in range(MOST_BLOCKS, fewest - 1, -1) if num_rounds(number, blocks) * round_s <= left_s),
            None,
        )
        if blocks is not None:
            return Plan(num_finalists=number, num_blocks=blocks)
    return Plan(num_finalists=0, num_blocks=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """All rounds of a confirmation."""

    comparison: Comparison
    rounds: tuple[Round, ...]
    trials: tuple[Trial, ...]
    """Of all rounds that gave a rate, in their order."""
    failures: tuple[str, ...]

    def outcome(self, one: Setting, against: Setting) -> Outcome:
        """Says how fast one setting is beside another, from the blocks that both ran in."""
        if one == against:
            return "same"
        floor = self.comparison.floor
        both = pairs(self.rounds, one.name, against.name)
        if floor is None or not both.log_ratios:
            return "inconclusive"
        return judge({"": both}, floor=floor, drift=self.comparison.drift, block_s=0.0)[""].outcome

    def as_fast(self, one: Setting, fastest: Setting) -> bool:
        """True if an equivalence test says so; a difference that merely was not found is not enough.

        It is enough where the faster one is the same setting with one knob more: the knob has to prove itself.
        """
        outcome = self.outcome(one, fastest)
        return outcome == "same" or (outcome == "inconclusive" and one != AS_IT_IS and includes(fastest, one))

    def of(self, setting: Setting) -> tuple[Trial, ...]:
        """The rounds of one setting."""
        return tuple(one for one in self.trials if one.setting == setting)


def confirm(
    finalists: Sequence[Setting],
    measure: Callable[[Setting], Trial],
    *,
    num_blocks: int,
    seed: int,
    has_time: Callable[[], bool] = lambda: True,
) -> Confirmed:
    """Runs the schedule; the present setting is in it twice.

    A block that is not finished, for want of time or because a round failed, does not count.
    """
    by_name = {one.name: one for one in (AS_IT_IS, *finalists)}
    rounds, trials, failures = [], [], []
    for slot in schedule(AS_IT_IS.name, [one.name for one in finalists], num_blocks=num_blocks, seed=seed):
        if not has_time():
            failures.append(f"the budget was spent in block {slot.block + 1} of {num_blocks}")
            break
        trial = measure(by_name[slot.setting])
        if trial.rate_per_s is None:
            failures.append(f"{slot.setting}: {trial.failure}")
            continue
        trials.append(trial)
        rounds.append(Round(slot=slot, rate_per_s=trial.rate_per_s, began_s=trial.began_s))
    return Confirmed(
        comparison=compare(rounds, present=AS_IT_IS.name, seed=seed) if rounds else _nothing(),
        rounds=tuple(rounds),
        trials=tuple(trials),
        failures=tuple(dict.fromkeys(failures)),
    )


def _nothing() -> Comparison:
    return Comparison(settings={}, floor=None, drift=None, pairs={}, verdicts={})
