"""Times two loaders in turn, in mirrored blocks with a control of the first."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from typing import Any

from headrace.doctor.evidence.speeds import SpeedRatio
from headrace.doctor.lab.launch import launchers_for
from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.round import told
from headrace.doctor.statistics.comparison import compare
from headrace.doctor.statistics.rounds import Round
from headrace.doctor.statistics.schedule import fewest_blocks, num_rounds, schedule
from headrace.doctor.timing.rates import epoch_rate
from headrace.doctor.timing.runs import TimedRun
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.timed import Timed
from headrace.doctor.wording.samples import count

__all__ = ["time_in_turn"]

PER_BATCH_S = 60.0
"""Seconds after which a batch is stuck: that it does not hang has been seen before."""
SHORTEST_S, LONGEST_S = 0.3, 1.0
"""Of the steady part of a round."""
MOST_WINDOWS, LEAST_MOST_S = 2.5, 3.0
"""A round may take so many times the steady part that is wanted, and so many seconds in any case."""
MOST_BLOCKS = 9
"""More narrow an interval by less than people notice."""
HOPE = 0.85
"""Of the time that is left, planned: a round that takes longer than the first one must not cost a block."""
A, B = "A", "B"


def time_in_turn(
    target_a: Any,
    target_b: Any,
    *,
    budget_s: float,
    seed: int,
    folder: str,
    workers: tuple[int | None, int | None] = (None, None),
    num_samples: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SpeedRatio:
    """Returns how fast B is beside A.

    Args:
        target_a: TARGET as `train.py:make_loader`, or a loader, which runs in forks of this process.
        target_b: The other one.
        budget_s: Seconds for everything. A minute is enough for loaders that start, and end a short epoch, within a second.
        seed: Of the global generators before each epoch, and of the order of rounds.
        folder: An empty one, for what rounds write.
        workers: Numbers of workers. Default: as each is set.
        num_samples: Of an epoch; None: not known, epochs are taken for endless.
        say: Told, in a few words, what is being done.

    Nothing that was started is left afterwards.
    """
    budget = Budget(budget_s)
    launchers = launchers_for((target_a, target_b), seed=seed)
    sides = {
        name: _Side(target, number, Lab(_spec(target), budget=budget, per_sample_s=PER_BATCH_S, launcher=launcher))
        for name, target, number, launcher in zip((A, B), (target_a, target_b), workers, launchers, strict=True)
    }
    try:
        return _InTurn(sides, budget, seed, folder, num_samples, say).run()
    finally:
        for side in reversed(sides.values()):  # the first may own what starts the other's children
            side.lab.__exit__()


def _spec(target: Any) -> str:
    return target if isinstance(target, str) else f"this {type(target).__name__}"


@dataclasses.dataclass(frozen=True, slots=True)
class _Side:
    target: Any
    num_workers: int | None
    lab: Lab

    @property
    def setting(self) -> Setting:
        return AS_IT_IS if self.num_workers is None else Setting(num_workers=self.num_workers)


class _InTurn:
    """The course."""

    def __init__(
        self,
        sides: dict[str, _Side],
        budget: Budget,
        seed: int,
        folder: str,
        num_samples: int | None,
        say: Callable[[str], None],
    ) -> None:
        self._sides, self._budget, self._seed = sides, budget, seed
        self._folder, self._num_samples, self._say = folder, num_samples, say
        self._rounds: list[Round] = []
        self._num_folders = 0

    def run(self) -> SpeedRatio:
        """A first round of each says what a round takes; then blocks, as many as fit."""
        took_s = []
        for name in self._sides:
            began_s = self._budget.left_s
            timed, failure = self._timed(name, SHORTEST_S)
            if timed is None or epoch_rate(timed, self._num_samples) is None:
                why = failure or (timed.why if timed is not None else "") or "too few batches for a rate"
                return self._said(f"{name} was not timed: {why}")
            took_s.append(began_s - self._budget.left_s - SHORTEST_S)
        extra_s = max(0.05, sum(took_s) / len(took_s))
        fewest = fewest_blocks(1)
        # Longer rounds first, and more of them only when they are as long as is of use.
        left_s = HOPE * self._budget.left_s
        window_s = min(max(left_s / num_rounds(1, fewest) - extra_s, SHORTEST_S), LONGEST_S)
        num_blocks = min(int(left_s / num_rounds(1, 1) / (extra_s + window_s) + 1e-9), MOST_BLOCKS)
        for slot in schedule(A, [B], num_blocks=max(num_blocks, 1), seed=self._seed):
            if self._budget.left_s < extra_s + window_s:
                break
            self._say(f"timing both in turn, block {slot.block + 1} of {num_blocks}; {self._budget.left_s:.0f} s left")
            timed, failure = self._timed(slot.setting, window_s)
            rate = None if timed is None else epoch_rate(timed, self._num_samples)
            if timed is not None and rate is not None:
                self._rounds.append(Round(slot=slot, rate_per_s=rate, began_s=timed.began_s))
        found = self._said("")
        if found.num_blocks >= fewest:
            return found
        few = f"there was time for {count(found.num_blocks, 'block')}, and {fewest} can tell"
        return dataclasses.replace(found, why=few)

    def _timed(self, name: str, window_s: float) -> tuple[Timed | None, str]:
        side = self._sides[name]
        side.lab.close()
        self._num_folders += 1
        folder = os.path.join(self._folder, str(self._num_folders))  # noqa: PTH118 - a text is at hand
        os.makedirs(folder)  # noqa: PTH103
        records: list[Any] = []
        wish = TimedRun(
            kind="L",
            setting=side.setting,
            window_s=window_s,
            most_s=max(0.5, min(max(MOST_WINDOWS * window_s, LEAST_MOST_S), self._budget.left_s)),
            seed=self._seed,
            folder=folder,
        )
        ending = side.lab.run(wish, records.append)
        side.lab.close()  # its workers and memory must not stand beside the other's round
        return next((one for one in records if isinstance(one, Timed)), None), told(ending)

    def _said(self, why: str) -> SpeedRatio:
        rates = {name: tuple(one.rate_per_s for one in self._rounds if one.slot.setting == name) for name in (A, B)}
        found = compare(self._rounds, present=A, seed=self._seed) if self._rounds else None
        verdict = None if found is None else found.verdicts.get(B)
        floor = None if found is None or found.floor is None else found.floor.bound_log
        is_bounded = verdict is not None and math.isfinite(verdict.ratio_interval.high)
        return SpeedRatio(
            rates_a=rates[A],
            rates_b=rates[B],
            outcome="inconclusive" if verdict is None else verdict.outcome,
            ratio=None if verdict is None else verdict.ratio,
            interval=(verdict.ratio_interval.low, verdict.ratio_interval.high)
            if verdict is not None and is_bounded
            else None,
            noise=None if floor is None or not math.isfinite(floor) else math.exp(floor),
            num_blocks=0 if verdict is None else verdict.num_blocks,
            why=why,
            more_s=None if verdict is None or verdict.settling is None else verdict.settling.more_s,
        )
