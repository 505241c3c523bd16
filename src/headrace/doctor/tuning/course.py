"""The course of a tuning: what is run, in which order, and how much of the time each part may take.

need ──▶ the present setting: enough? keep it ──▶ search (L) ──▶ proofs ──▶ fresh rounds ──▶ choice
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence

from headrace.doctor.statistics.rounds import describe
from headrace.doctor.statistics.schedule import fewest_blocks, num_rounds
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.timed import Kind
from headrace.doctor.tuning.choice import Choice, Contender, Limits, bars, choose
from headrace.doctor.tuning.confirmation import MOST_FINALISTS, Confirmed, Plan, confirm, plan
from headrace.doctor.tuning.cost import Cost, cost_of
from headrace.doctor.tuning.facts import LoaderNow, changes_of
from headrace.doctor.tuning.gain import expected_gain
from headrace.doctor.tuning.halving import Ranked, halve
from headrace.doctor.tuning.lattice import coarse, fine, most_workers
from headrace.doctor.tuning.model import Need
from headrace.doctor.tuning.notebook import Notebook
from headrace.doctor.tuning.rig import Rig
from headrace.doctor.tuning.trial import Trial
from headrace.errors import TargetError

__all__ = ["Course", "Wishes"]

NUM_NEED = 3
"""Rounds of the training step alone."""
NUM_PRESENT = (3, 5)
"""Rounds that settle whether the present setting is enough: at least so many where that is plain, and at most."""
NUM_SUPPLY = 4
"""Fresh rounds of the loader alone for each finalist; the loop's own rounds are many more."""
PROOF_SHARE, RESERVE = 0.1, 0.03
"""Parts of the budget for each proof, and in which nothing is begun."""
MOST_PROOFS = 5
"""Settings whose data are compared: where three of five differ, the fault is not theirs."""
LEAST_WINDOW_S = 0.4
WHOLE = 1.0
"""Seconds that a round takes less if its steady part is to be a second shorter: at least so many."""
HOPE = 1.3
"""Estimates err: only a budget that is shorter than what is needed by more than that is given up at once."""
WALKS = 12.0
"""A proof walks six epochs, and digests what it walks through."""
START_S = 6.0
"""Of a proof: its processes, imports and reads."""
WORTH = 1.03
"""A setting that is not so much faster in its trials is no reason for a change."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is wanted."""

    need_per_s: float | None
    """Samples per second that were asked for; None: the training step says, or nothing does."""
    has_step: bool
    """True: there is a training step, given or emulated."""
    step_name: str
    margin: float
    """What the loader should supply more than the training step takes, as a share."""
    budget_s: float
    workers_max: int | None
    limits: Limits
    seed: int
    window_s: float
    """Seconds of the steady part of a round."""


class Course:
    """One tuning."""

    def __init__(self, rig: Rig, wishes: Wishes, facts: LoaderNow, say: Callable[[str], None]) -> None:
        self.rig, self.wishes, self.facts, self.say = rig, wishes, facts, say
        self.notes = Notebook(facts)
        self.need: Need | None = None
        self.finalists: list[Setting] = []
        self.confirmed: Confirmed | None = None
        self.num_blocks = 0
        self.left_out: list[str] = []
        self._spent: list[float] = []

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
        arms = self._arms()
        if len(arms) > 1 and not self._has_time((len(arms) * self._round_s() + self._rest_s(1)) / HOPE):
            return self._too_short(len(arms))
        order = self._search(arms)
        if len(arms) > 1 and all(one.setting == AS_IT_IS for one in order if one.rates_per_s or one.failure):
            return self._too_short(len(arms))
        self.finalists = self._prove(order)
        self._confirm()
        return self._choose()

    # What is needed.

    def _find_need(self) -> Need | None:
        wishes = self.wishes
        compute = step_s = None
        if wishes.has_step:
            trials = [
                self._measure("C", AS_IT_IS, f"the training step alone, round {at + 1}") for at in range(NUM_NEED)
            ]
            rates = [one.rate_per_s for one in trials if one.rate_per_s is not None]
            if not rates:
                raise TargetError(f"{wishes.step_name} does not run: {trials[-1].failure}")
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
        trial = self._measure("L", AS_IT_IS, "the loader as it is")
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
            self._fresh_supply(AS_IT_IS)
        if min(entry.supplies) < need:
            return None
        for at in range(NUM_NEED if self.wishes.has_step else 0):
            self._fresh_loop(AS_IT_IS, at)
        self._weigh(AS_IT_IS)
        present = self.notes.contender(AS_IT_IS, self.need)
        if bars(present, need, self.wishes.limits):
            return None
        return choose(present, [], need_per_s=need, limits=self.wishes.limits, as_fast=lambda _, __: False)

    @staticmethod
    def _is_settled(supplies: Sequence[float], need: float) -> bool:
        """True if more rounds are not needed, or would not help."""
        if len(supplies) < NUM_PRESENT[0]:
            return False
        return len(supplies) == NUM_PRESENT[1] or describe(supplies).interval_per_s.low >= need

    # The search.

    def _arms(self) -> list[Setting]:
        """What the search begins with, the present setting first."""
        share = self.notes[AS_IT_IS].trials[0].computing_share
        most = most_workers(self.facts, given=self.wishes.workers_max, computing_share=share)
        return [AS_IT_IS, *coarse(self.facts, most=most)]

    def _search(self, arms: Sequence[Setting]) -> list[Ranked]:
        """Returns settings in the order of merit, the present one among them."""
        order = self._halve(arms, "L")
        best = next((one for one in order if one.rates_per_s), None)
        if best is None:
            return order
        more = fine(self.facts, best.setting)
        # Deeper queues and the like do nothing for a loader that nobody waits for: with a step they are tried in the loop.
        around = self._halve([best.setting, *more], "I" if self.wishes.has_step else "L") if more else []
        better = [one for one in around if one.rates_per_s]
        at = next((place for place, one in enumerate(better) if one.setting == best.setting), 0)
        # Those behind it are no faster.
        return [*better[:at], *order]

    def _halve(self, arms: Sequence[Setting], kind: Kind, known: Sequence[Ranked] = ()) -> list[Ranked]:
        rates = {one.setting: one.rates_per_s for one in known}

        def measure(setting: Setting) -> Trial:
            trial = self._measure(kind, setting, f"trying {self.facts.describe(setting)}")
            self.notes.note(trial)
            return trial

        entered = [
            Ranked(setting=one, cost=self._cost(one), rates_per_s=rates.get(one, ())) for one in dict.fromkeys(arms)
        ]
        order = halve(
            entered,
            measure,
            need_per_s=self.need_per_s if kind == "L" else None,
            keep=MOST_FINALISTS + 1,
            has_time=lambda: self._has_time(self._rest_s(1) / HOPE),
        )
        if untried := [self.facts.describe(one.setting) for one in order if not one.rates_per_s and not one.failure]:
            self.left_out.append(f"no time to try {'; '.join(untried)}")
        return order

    def _cost(self, setting: Setting) -> Cost:
        return cost_of(self.facts, setting, batch_bytes=self.notes.batch_bytes)

    # The proofs.

    def _prove(self, order: Sequence[Ranked]) -> list[Setting]:
        """Returns the best settings whose data are the same."""
        wanted = self._worth(order)
        proven: list[Setting] = []
        wrong: list[Setting] = []
        for setting in wanted:
            if len(proven) + len(wrong) == MOST_PROOFS:
                break
            if any(_includes(setting, one) for one in wrong):
                continue  # one knob more does not mend it
            if len(proven) == MOST_FINALISTS or (proven and not self._has_time(self._rest_s(len(proven) + 1))):
                break
            budget_s = self._proof_s
            self.say(f"comparing the data of {self.facts.describe(setting)}")
            proof = self.rig.prove(setting, budget_s=budget_s, max_samples=self._num_compared(budget_s))
            self.notes[setting].proof = proof
            (proven if proof.same_data == "proven" else wrong).append(setting)
        return proven

    def _worth(self, order: Sequence[Ranked]) -> list[Setting]:
        """Settings that are faster than the present one in their trials, the best first; if none is, the best of the others.

        A present setting that takes too much memory may be left for a slower one.
        """
        others = [one for one in order if one.setting != AS_IT_IS and one.rates_per_s]
        if bars(self.notes.contender(AS_IT_IS, None), None, self.wishes.limits):
            return list(dict.fromkeys(one.setting for one in others))
        faster = [one.setting for one in others if one.rate_per_s >= WORTH * self._now(one.setting)]
        return list(dict.fromkeys(faster or [one.setting for one in others[:1]]))

    def _now(self, setting: Setting) -> float:
        """Rate of the present setting in trials of the kind that another one was ranked by; 0: there were none."""
        kind = self.notes[setting].trials[-1].kind
        rates = [
            one.rate_per_s for one in self.notes[AS_IT_IS].trials if one.kind == kind and one.rate_per_s is not None
        ]
        return statistics.median(rates) if rates else 0.0

    def _num_compared(self, budget_s: float) -> int | None:
        """Samples of each epoch that can be walked six times in the time; None: all."""
        rate = self.notes[AS_IT_IS].trials[0].rate_per_s or 0.0
        number = int(rate * max(budget_s - START_S, 1.0) / WALKS)
        number = max(number, 8 * (self.facts.batch_size or 1))
        if self.facts.num_samples is not None and number >= self.facts.num_samples:
            return None
        return number

    # The fresh rounds.

    def _confirm(self) -> None:
        if not self.finalists:
            self._settle_present()
            return
        if self.wishes.has_step:
            for _ in range(NUM_SUPPLY):
                for setting in (AS_IT_IS, *self.finalists):
                    self._fresh_supply(setting)
        for setting in (AS_IT_IS, *self.finalists):
            self._weigh(setting)
        found, window_s = self._plan()
        for setting in self.finalists[found.num_finalists :]:
            self.left_out.append(f"no time to confirm {self.facts.describe(setting)}")
        kept = self.finalists[: found.num_finalists]
        self.num_blocks = found.num_blocks
        kind: Kind = "I" if self.wishes.has_step else "L"
        self.confirmed = confirm(
            kept,
            lambda setting: self._measure(kind, setting, f"confirming {self.facts.describe(setting)}", window_s),
            num_blocks=found.num_blocks,
            seed=self.wishes.seed,
            has_time=lambda: self._has_time(0.0),
        )
        self.left_out += self.confirmed.failures
        for setting in (AS_IT_IS, *kept):
            self._enter(setting, self.confirmed)

    def _rest_s(self, num_finalists: int) -> float:
        """Seconds that are needed from a proof on, to confirm so many settings."""
        loop = num_rounds(num_finalists, fewest_blocks(num_finalists))
        weighed = (num_finalists + 1) * (1 + (NUM_SUPPLY if self.wishes.has_step else 0))
        return self._proof_s + (loop + weighed) * self._round_s()

    @property
    def _proof_s(self) -> float:
        return max(PROOF_SHARE * self.wishes.budget_s, 2 * START_S)

    def _too_short(self, num_arms: int) -> Choice:
        """Says so before minutes are spent on what would not be enough."""
        used_s = self.wishes.budget_s - self.rig.left_s
        needed_s = 1.2 * (used_s + 2 * num_arms * self._round_s() + self._rest_s(1)) / (1 - RESERVE)
        why = f"the budget of {self.wishes.budget_s:.0f} s is too short for rounds that tell settings apart"
        return Choice(
            outcome="inconclusive",
            setting=None,
            meets_need=None,
            why=f"{why}: --budget {math.ceil(needed_s / 60)}m would do",
        )

    def _plan(self) -> tuple[Plan, float]:
        """How many finalists, in how many blocks, and how long the steady part of each round is to be."""
        left_s = self.rig.left_s - RESERVE * self.wishes.budget_s
        windows = [one for share in (1.0, 0.5, 0.25) if (one := share * self.wishes.window_s) > LEAST_WINDOW_S]
        found = (
            Plan(num_finalists=1, num_blocks=fewest_blocks(1)),
            LEAST_WINDOW_S,
        )  # estimates err: it is tried at least
        for number in range(1, len(self.finalists) + 1):
            for window_s in (*windows, LEAST_WINDOW_S):
                fits = plan(number, left_s=left_s, round_s=self._round_s(window_s))
                if fits.num_finalists == number:
                    found = fits, window_s
                    break
        return found

    def _settle_present(self) -> None:
        """Nothing to compare it with: its own rounds say what it gives."""
        while len(self.notes[AS_IT_IS].supplies) < NUM_PRESENT[1] and self._has_time(0.0):
            self._fresh_supply(AS_IT_IS)

    def _enter(self, setting: Setting, confirmed: Confirmed) -> None:
        entry = self.notes[setting]
        trials = confirmed.of(setting)
        if self.wishes.has_step:
            entry.loops = list(trials)
        else:
            entry.supplies = [one.rate_per_s for one in trials if one.rate_per_s is not None]
        verdict = confirmed.comparison.verdicts.get(setting.name)
        if verdict is not None and confirmed.comparison.floor is not None:
            entry.speed = verdict.outcome
            both = confirmed.comparison.pairs[setting.name]
            entry.gain = expected_gain(both, confirmed.comparison.floor, seed=self.wishes.seed)

    def _choose(self) -> Choice:
        present = self.notes.contender(AS_IT_IS, self.need)
        judged = [one for one in self.finalists if self.notes[one].gain is not None]
        others = [self.notes.contender(one, self.need) for one in judged]
        if self.finalists and not judged:
            why = "the time did not do for the rounds that tell settings apart; --budget gives more"
            return Choice(outcome="inconclusive", setting=None, meets_need=None, why=why)

        def as_fast(one: Contender, other: Contender) -> bool:
            return self.confirmed is not None and self.confirmed.as_fast(one.setting, other.setting)

        return choose(present, others, need_per_s=self.need_per_s, limits=self.wishes.limits, as_fast=as_fast)

    # Rounds.

    def _measure(self, kind: Kind, setting: Setting, doing: str, window_s: float | None = None) -> Trial:
        left_s = self.rig.left_s
        self.say(f"{doing}, {left_s:.0f} s left")
        trial = self.rig.measure(kind, setting, window_s=window_s or self.wishes.window_s)
        if window_s is None:
            self._spent.append(left_s - self.rig.left_s)
        return trial

    def _fresh_supply(self, setting: Setting) -> None:
        trial = self._measure("L", setting, f"the loader alone, {self.facts.describe(setting)}")
        if trial.rate_per_s is None:
            raise TargetError(f"{self.facts.describe(setting)} does not run any more: {trial.failure}")
        self.notes[setting].supplies.append(trial.rate_per_s)

    def _fresh_loop(self, setting: Setting, at: int) -> None:
        trial = self._measure("I", setting, f"the loop, {self.facts.describe(setting)}, round {at + 1}")
        if trial.rate_per_s is None:
            raise TargetError(f"the loop does not run: {trial.failure}")
        self.notes[setting].loops.append(trial)

    def _weigh(self, setting: Setting) -> None:
        if self.notes[setting].memory == (None, None):
            self.say(f"memory of {self.facts.describe(setting)}")
            self.notes[setting].memory = self.rig.memory(setting, window_s=LEAST_WINDOW_S)

    def _round_s(self, window_s: float = LEAST_WINDOW_S) -> float:
        """Seconds of a round with its start, if its steady part is to be so long; from the rounds so far."""
        if not self._spent:
            return 2 * window_s
        mean_s = statistics.fmean(self._spent)
        return max(mean_s - WHOLE * (self.wishes.window_s - window_s), 0.2 * mean_s)

    def _has_time(self, leaves_s: float) -> bool:
        return self.rig.left_s > leaves_s + RESERVE * self.wishes.budget_s


def _includes(setting: Setting, other: Setting) -> bool:
    """True if it changes all that the other changes, in the same way."""
    return all(getattr(setting, name) == new for name, _, new in changes_of(AS_IT_IS, other))
