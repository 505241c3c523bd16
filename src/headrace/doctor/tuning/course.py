"""The course of a tuning: what is run, in which order, and how much of the time each part may take.

need ──▶ the present setting: enough? keep it ──▶ search (L) ──▶ proofs ──▶ fresh rounds ──▶ choice
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.rounds import describe
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.timed import Kind
from headrace.doctor.tuning.choice import Choice, Contender, bars, choose
from headrace.doctor.tuning.confirmation import Confirmed, confirm
from headrace.doctor.tuning.cost import cost_of
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.gain import expected_gain
from headrace.doctor.tuning.halving import ENOUGH
from headrace.doctor.tuning.model import Need
from headrace.doctor.tuning.notebook import Notebook
from headrace.doctor.tuning.pace import HOPE, LEAST_WINDOW_S, NUM_SUPPLY, Pace, Wishes
from headrace.doctor.tuning.rig import Rig
from headrace.doctor.tuning.search import WORTH, Search
from headrace.doctor.tuning.trial import Trial
from headrace.errors import TargetError

__all__ = ["Course"]

FACTOR = 3.0
"""A proof that did not come to its end surely does in so many times its time: it was to walk a fraction of the samples."""

NUM_NEED = 3
"""Rounds of the training step alone."""
NUM_PRESENT = (3, 5)
"""Rounds that settle whether the present setting is enough: at least so many where that is plain, and at most."""


class Course:
    """One tuning."""

    def __init__(self, rig: Rig, wishes: Wishes, facts: LoaderNow, say: Callable[[str], None]) -> None:
        self.pace, self.facts = Pace(rig, wishes, say), facts
        self.notes = Notebook(facts)
        self.need: Need | None = None
        self.finalists: list[Setting] = []
        self.confirmed: Confirmed | None = None
        self.num_blocks = 0
        self.left_out: list[str] = []
        self._longest_proof_s = 0.0

    @property
    def need_per_s(self) -> float | None:
        """Samples per second; None: not known."""
        return None if self.need is None else self.need.rate_per_s

    def run(self) -> Choice:
        """Runs it and returns the choice.

        Raises:
            TargetError: the loader, or the training step, does not run as it is.
        """
        self.need = self._find_need()
        self.notes.note(self._first_trial())
        kept = self._look_at_present()
        if kept is not None:
            return kept
        search = Search(self.pace, self.notes, self.need_per_s)
        arms = search.arms()
        if len(arms) > 1 and not self.pace.has_time((len(arms) * self.pace.round_s() + self.pace.rest_s(1)) / HOPE):
            return self._too_short(len(arms))
        order = search.search(arms)
        self.left_out += search.left_out
        if len(arms) > 1 and all(one.setting == AS_IT_IS for one in order if one.rates_per_s or one.failure):
            return self._too_short(len(arms))
        self.finalists = search.prove(order)
        self._longest_proof_s = search.longest_proof_s
        self._confirm()
        return self._choose()

    # What is needed.

    def _find_need(self) -> Need | None:
        wishes = self.pace.wishes
        compute = step_s = None
        if wishes.has_step:
            trials = [
                self.pace.measure("C", AS_IT_IS, f"the training step alone, round {at + 1}")
                for at in range(1 if wishes.need_per_s is not None else NUM_NEED)
            ]
            rates = [one.rate_per_s for one in trials if one.rate_per_s is not None]
            if not rates:
                why = trials[-1].failure.removeprefix("TargetError: ")
                raise TargetError(f"{wishes.step_name} does not run: {why}")
            compute = statistics.median(rates)
            step_s = None if not self.facts.batch_size else self.facts.batch_size / compute
        if wishes.need_per_s is not None:
            return Need(rate_per_s=wishes.need_per_s, source="given", compute_per_s=compute, step_s=step_s)
        if compute is None:
            return None
        rate = compute * (1 + wishes.margin)
        return Need(rate_per_s=rate, source=wishes.step_name, compute_per_s=compute, step_s=step_s)

    # The present setting.

    def _first_trial(self) -> Trial:
        trial = self.pace.measure("L", AS_IT_IS, "the loader as it is")
        if trial.rate_per_s is None:
            raise TargetError(f"the loader does not run as it is: {trial.failure}")
        return trial

    def _look_at_present(self) -> Choice | None:
        """Keeps it at once if it is enough: what is enough is not improved."""
        need = self.need_per_s
        if need is None:
            return None
        entry = self.notes[AS_IT_IS]
        entry.supplies = [one.rate_per_s for one in entry.trials if one.rate_per_s is not None]
        while min(entry.supplies) >= need and not self._is_settled(entry.supplies, need):
            if not self._fresh_supply(AS_IT_IS):
                return None
        if min(entry.supplies) < need:
            return None
        for at in range(NUM_NEED if self.pace.wishes.has_step else 0):
            if not self._fresh_loop(AS_IT_IS, at):
                return None
        self._weigh(AS_IT_IS)
        present = self.notes.contender(AS_IT_IS, self.need)
        if bars(present, need, self.pace.wishes.limits):
            return None
        found = choose(present, [], need_per_s=need, limits=self.pace.wishes.limits, as_fast=lambda _, __: False)
        return dataclasses.replace(found, simpler=self._without_workers(need))

    def _without_workers(self, need_per_s: float) -> Setting | None:
        """Workers that nobody needs: one look at the loader without them, which is enough to say that they may be."""
        trial = self._look("I" if self.pace.wishes.has_step else "L")
        if trial is None or trial.rate_per_s is None:
            return None
        if not self.pace.wishes.has_step:
            return trial.setting if trial.rate_per_s >= ENOUGH * need_per_s else None
        # The loop waits for each batch then: the need, which goes by batches that are made meanwhile, says nothing.
        waits = Contender(
            setting=trial.setting,
            cost=cost_of(self.facts, trial.setting, batch_bytes=self.notes.batch_bytes),
            supply_per_s=Interval(0.0, math.inf),
            starved_share=trial.starved_share,
            p99_wait_s=trial.p99_wait_s,
            step_s=None if self.need is None else self.need.step_s,
            same_data="proven",
        )
        return None if bars(waits, None, self.pace.wishes.limits) else trial.setting

    def _look(self, kind: Kind) -> Trial | None:
        """Runs the loader once without its workers; None: it has none, they cannot be left out, or there is no time."""
        setting = self.facts.difference(Setting(num_workers=0))
        has_workers = bool(self.facts.present.num_workers) and "workers" not in self.facts.cannot
        if setting == AS_IT_IS or not has_workers or not self.pace.has_time(self.pace.round_s()):
            return None
        doing = f"a look at {self.facts.describe(setting)}"
        trial = self.pace.measure(kind, setting, doing, self.pace.search_window_s)
        self.notes.note(trial)
        return trial

    @staticmethod
    def _is_settled(supplies: Sequence[float], need: float) -> bool:
        """True if more rounds are not needed, or would not help."""
        if len(supplies) < NUM_PRESENT[0]:
            return False
        return len(supplies) == NUM_PRESENT[1] or describe(supplies).interval_per_s.low >= need

    # The fresh rounds.

    def _confirm(self) -> None:
        if not self.finalists:
            self._settle_present()
            return
        if self.pace.wishes.has_step:
            for _ in range(NUM_SUPPLY):
                for setting in (AS_IT_IS, *self.finalists):
                    self._fresh_supply(setting)
        for setting in (AS_IT_IS, *self.finalists):
            self._weigh(setting)
        found, window_s = self.pace.plan(len(self.finalists))
        for setting in self.finalists[found.num_finalists :]:
            self.left_out.append(f"no time to confirm {self.facts.describe(setting)}")
        kept = self.finalists[: found.num_finalists]
        self.num_blocks = found.num_blocks
        kind: Kind = "I" if self.pace.wishes.has_step else "L"
        self.confirmed = confirm(
            kept,
            lambda setting: self.pace.measure(kind, setting, f"confirming {self.facts.describe(setting)}", window_s),
            num_blocks=found.num_blocks,
            seed=self.pace.wishes.seed,
            has_time=self.pace.has_time,
        )
        self.left_out += self.confirmed.failures
        for setting in (AS_IT_IS, *kept):
            self._enter(setting, self.confirmed)

    def _too_short(self, num_arms: int) -> Choice:
        """Says so before minutes are spent on what would not be enough."""
        used_s = self.pace.wishes.budget_s - self.pace.rig.left_s
        needed_s = 1.2 * (used_s + 2 * num_arms * self.pace.round_s() + self.pace.rest_s(1)) / 0.97
        why = f"the budget of {self.pace.wishes.budget_s:.0f} s is too short for rounds that tell settings apart"
        trial, now = self._look("L"), self.notes.gives(AS_IT_IS)
        if trial is not None and trial.rate_per_s and now and self._is_faster(trial.setting):
            why += f", though in one round {self.facts.describe(trial.setting)} gave {_times(trial.rate_per_s / now)}"
        return Choice(
            outcome="inconclusive",
            setting=None,
            meets_need=None,
            why=f"{why}: --budget {math.ceil(needed_s / 60)}m would do",
        )

    def _is_faster(self, setting: Setting) -> bool:
        rate, now = self.notes.gives(setting), self.notes.gives(AS_IT_IS)
        return rate is None or now is None or rate > WORTH * now

    def _unproven(self, setting: Setting) -> Choice:
        """Nothing speaks against a faster setting but that the time did not do to compare its data."""
        used_s = self.pace.wishes.budget_s - self.pace.rig.left_s
        needed_s = 1.2 * (used_s + FACTOR * self._longest_proof_s + self.pace.rest_s(1)) / 0.97
        rate, now = self.notes.gives(setting), self.notes.gives(AS_IT_IS)
        gave = f", which gave {_times(rate / now)} in its trials" if rate and now else ""
        return Choice(
            outcome="inconclusive",
            setting=None,
            meets_need=None,
            why=f"there was no time to compare the data of {self.facts.describe(setting)}{gave}: "
            f"--budget {math.ceil(max(needed_s, self.pace.wishes.budget_s) / 60)}m would do",
        )

    def _settle_present(self) -> None:
        """Nothing to compare it with: its own rounds say what it gives."""
        while len(self.notes[AS_IT_IS].supplies) < NUM_PRESENT[1] and self.pace.has_time():
            if not self._fresh_supply(AS_IT_IS):
                return

    def _enter(self, setting: Setting, confirmed: Confirmed) -> None:
        entry = self.notes[setting]
        trials = confirmed.of(setting)
        if self.pace.wishes.has_step:
            entry.loops = list(trials)
        else:
            entry.supplies = [one.rate_per_s for one in trials if one.rate_per_s is not None]
        verdict = confirmed.comparison.verdicts.get(setting.name)
        if verdict is not None and confirmed.comparison.floor is not None:
            entry.speed = verdict.outcome
            both = confirmed.comparison.pairs[setting.name]
            entry.gain = expected_gain(both, confirmed.comparison.floor, seed=self.pace.wishes.seed)

    def _choose(self) -> Choice:
        present = self.notes.contender(AS_IT_IS, self.need)
        judged = [one for one in self.finalists if self._is_judged(one)]
        others = [self.notes.contender(one, self.need) for one in judged]
        if self.finalists and not judged:
            why = "the time did not do for the rounds that tell settings apart; --budget gives more"
            return Choice(outcome="inconclusive", setting=None, meets_need=None, why=why)

        def as_fast(one: Contender, other: Contender) -> bool:
            return self.confirmed is not None and self.confirmed.as_fast(one.setting, other.setting)

        found = choose(present, others, need_per_s=self.need_per_s, limits=self.pace.wishes.limits, as_fast=as_fast)
        late = self.notes.unfinished
        if found.outcome == "keep" and not others and late is not None and self._is_faster(late):
            return self._unproven(late)
        if not others and self.notes.has_wrong:
            return dataclasses.replace(found, why="of what is faster the data differ, or are not proven to be the same")
        return found

    def _is_judged(self, setting: Setting) -> bool:
        """True if enough blocks were run to bound what it gains."""
        gain = self.notes[setting].gain
        return gain is not None and math.isfinite(gain.interval.high)

    # Rounds.

    def _fresh_supply(self, setting: Setting) -> bool:
        """Runs the loader alone once more; False: it failed, which is told and decides nothing."""
        trial = self.pace.measure("L", setting, f"the loader alone, {self.facts.describe(setting)}")
        if trial.rate_per_s is None:
            self._fail(trial, "the loader alone")
            return False
        self.notes[setting].supplies.append(trial.rate_per_s)
        return True

    def _fresh_loop(self, setting: Setting, at: int) -> bool:
        trial = self.pace.measure("I", setting, f"the loop, {self.facts.describe(setting)}, round {at + 1}")
        if trial.rate_per_s is None:
            self._fail(trial, "the loop")
            return False
        self.notes[setting].loops.append(trial)
        return True

    def _fail(self, trial: Trial, what: str) -> None:
        self.left_out.append(f"a round of {what} failed, {self.facts.describe(trial.setting)}: {trial.failure}")

    def _weigh(self, setting: Setting) -> None:
        if self.notes[setting].memory == (None, None):
            self.pace.say(f"memory of {self.facts.describe(setting)}")
            self.notes[setting].memory = self.pace.rig.memory(setting, window_s=LEAST_WINDOW_S)


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times as many samples/s"
