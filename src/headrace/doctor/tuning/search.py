"""Looks for finalists: settings that are faster in their trials, the simplest first, and proven to deliver the same data."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.timing.timed import Kind
from headrace.doctor.tuning.choice import bars
from headrace.doctor.tuning.confirmation import MOST_FINALISTS
from headrace.doctor.tuning.cost import cost_of
from headrace.doctor.tuning.facts import LoaderNow, includes
from headrace.doctor.tuning.halving import Ranked, halve
from headrace.doctor.tuning.lattice import coarse, fine, most_workers
from headrace.doctor.tuning.model import Proof
from headrace.doctor.tuning.notebook import Notebook
from headrace.doctor.tuning.pace import HOPE, Pace
from headrace.doctor.tuning.trial import Trial

__all__ = ["WORTH", "Search"]

MOST_PROOFS = 5
"""Settings whose data are compared: where three of five differ, the fault is not theirs."""
FEWEST_BATCHES = 8
"""Of each epoch that a proof walks, however slow they are."""
FEWER = 4
"""A proof that does not come to its end is tried once more with so many times fewer samples."""
KNOB = 1.1
"""One more knob has to win so much in its trials, or it is not looked at any further."""
WORTH = 1.03
"""A setting that is not so much faster in its trials is no reason for a change."""


class Search:
    """One search."""

    def __init__(self, pace: Pace, notes: Notebook, need_per_s: float | None) -> None:
        self.pace, self.notes, self.need_per_s = pace, notes, need_per_s
        self.facts: LoaderNow = notes.facts
        self.left_out: list[str] = []
        self.longest_proof_s = 0.0

    def arms(self) -> list[Setting]:
        """What the search begins with, the present setting first."""
        share = self.notes[AS_IT_IS].trials[0].computing_share
        most = most_workers(self.facts, given=self.pace.wishes.workers_max, computing_share=share)
        return [AS_IT_IS, *coarse(self.facts, most=most)]

    def search(self, arms: Sequence[Setting]) -> list[Ranked]:
        """Returns settings in the order of merit, the present one among them."""
        order = self._halve(arms, "L")
        best = next((one for one in order if one.rates_per_s), None)
        if best is None:
            return order
        more = fine(self.facts, best.setting)
        # Deeper queues and the like do nothing for a loader that nobody waits for: with a step they are tried in the loop.
        around = self._halve([best.setting, *more], "I" if self.pace.wishes.has_step else "L") if more else []
        better = [one for one in around if one.rates_per_s]
        own = next((one.rate_per_s for one in better if one.setting == best.setting), math.inf)
        better = [one for one in better if one.rate_per_s >= own * KNOB]
        # Behind the one without that knob: which of the two is enough is for their fresh rounds to say.
        place = order.index(best) + 1
        return [*order[:place], *better, *order[place:]]

    def _halve(self, arms: Sequence[Setting], kind: Kind, known: Sequence[Ranked] = ()) -> list[Ranked]:
        rates = {one.setting: one.rates_per_s for one in known}

        def measure(setting: Setting) -> Trial:
            doing = f"trying {self.facts.describe(setting)}"
            trial = self.pace.measure(kind, setting, doing, self.pace.search_window_s)
            self.notes.note(trial)
            return trial

        entered = [
            Ranked(
                setting=one,
                cost=cost_of(self.facts, one, batch_bytes=self.notes.batch_bytes),
                rates_per_s=rates.get(one, ()),
            )
            for one in dict.fromkeys(arms)
        ]
        order = halve(
            entered,
            measure,
            need_per_s=self.need_per_s if kind == "L" else None,
            keep=MOST_FINALISTS + 1,
            has_time=lambda: self.pace.has_time(self.pace.rest_s(1) / HOPE),
        )
        if untried := [self.facts.describe(one.setting) for one in order if not one.rates_per_s and not one.failure]:
            self.left_out.append(f"no time to try {'; '.join(untried)}")
        return order

    def prove(self, order: Sequence[Ranked]) -> list[Setting]:
        """Returns the best settings whose data are the same, as many as can be confirmed in the time."""
        wanted = self._worth(order)
        proven: list[Setting] = []
        wrong: list[Setting] = []
        for setting in wanted:
            if len(proven) == MOST_FINALISTS or len(proven) + len(wrong) == MOST_PROOFS:
                break
            if any(includes(setting, one) for one in wrong):
                continue  # one knob more does not mend it
            rest_s = self.pace.rest_s(len(proven) + 1) / (1.0 if proven else HOPE)
            if (proven or wrong) and not self.pace.has_time(rest_s):
                break
            proof = self._prove(setting, len(proven) + 1)
            self.notes[setting].proof = proof
            (proven if proof.same_data == "proven" else wrong).append(setting)
        return proven

    def _prove(self, setting: Setting, num_finalists: int) -> Proof:
        """Compares few enough samples for it to end in time."""
        number = self._num_compared(setting)
        while True:
            self.pace.say(f"comparing the data of {self.facts.describe(setting)}")
            before_s = self.pace.rig.left_s
            proof = self.pace.rig.prove(
                setting, budget_s=self.pace.most_proof_s(num_finalists), max_samples=self._or_all(number)
            )
            self.longest_proof_s = max(self.longest_proof_s, before_s - self.pace.rig.left_s)
            fewer = max(min(number, self.facts.num_samples or number) // FEWER, self._fewest)
            # Without one that is proven there is nothing else to spend time on.
            needed_s = self.pace.start_s if num_finalists == 1 else self.pace.rest_s(num_finalists)
            if not proof.is_unfinished or fewer >= number or not self.pace.has_time(needed_s):
                return proof
            number = fewer

    def _worth(self, order: Sequence[Ranked]) -> list[Setting]:
        """Settings that are faster than the present one in their trials, the best first; if none is, the best of the others.

        A present setting that takes too much memory may be left for a slower one.
        """
        others = [one for one in order if one.setting != AS_IT_IS and one.rates_per_s]
        if bars(self.notes.contender(AS_IT_IS, None), None, self.pace.wishes.limits):
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

    @property
    def _fewest(self) -> int:
        return FEWEST_BATCHES * (self.facts.batch_size or 1)

    def _num_compared(self, setting: Setting) -> int:
        """Samples of each epoch that a proof walks."""
        rates = [one.rate_per_s for key in (AS_IT_IS, setting) for one in self.notes[key].trials if one.rate_per_s]
        sample_bytes = self.notes.batch_bytes / (self.facts.batch_size or 1)
        return max(self.pace.num_compared(min(rates, default=0.0), sample_bytes), self._fewest)

    def _or_all(self, number: int) -> int | None:
        return None if self.facts.num_samples is not None and number >= self.facts.num_samples else number
