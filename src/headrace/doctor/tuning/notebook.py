"""What is known of each setting while tuning goes on, and the contenders and rows that are made of it."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from headrace.doctor.statistics.interval import Interval
from headrace.doctor.statistics.rounds import describe
from headrace.doctor.timing.setting import AS_IT_IS, Setting
from headrace.doctor.tuning.choice import Contender, Limits, bars
from headrace.doctor.tuning.cost import cost_of
from headrace.doctor.tuning.facts import LoaderNow
from headrace.doctor.tuning.model import Gain, Need, Proof, TriedRow
from headrace.doctor.tuning.trial import Trial

__all__ = ["Entry", "Notebook"]

FLAT = 0.02
"""A setting that gains less in its trials, or is the same by its confirmation, is told to be flat."""


@dataclasses.dataclass(slots=True)
class Entry:
    """One setting."""

    setting: Setting
    trials: list[Trial] = dataclasses.field(default_factory=list)
    """Of the search: they choose finalists, and say nothing about them."""
    supplies: list[float] = dataclasses.field(default_factory=list)
    """Rates of the loader alone, of rounds that were run after finalists were chosen."""
    loops: list[Trial] = dataclasses.field(default_factory=list)
    """Rounds of the loop."""
    memory: tuple[int | None, int | None] = (None, None)
    proof: Proof | None = None
    gain: Gain | None = None
    speed: str = ""
    failure: str = ""


class Notebook:
    """All settings of one tuning."""

    def __init__(self, facts: LoaderNow) -> None:
        self.facts = facts
        self.batch_bytes = 0
        self._entries: dict[Setting, Entry] = {}

    def __getitem__(self, setting: Setting) -> Entry:
        return self._entries.setdefault(setting, Entry(setting))

    @property
    def has_wrong(self) -> bool:
        """True if the data of a setting differ from those of the present one, or are not proven to be the same."""
        return any(one.proof is not None and one.proof.same_data != "proven" for one in self._entries.values())

    @property
    def unfinished(self) -> Setting | None:
        """The first setting of which nothing but time was missing to compare the data."""
        return next((key for key, one in self._entries.items() if one.proof and one.proof.is_unfinished), None)

    def gives(self, setting: Setting) -> float | None:
        """Median rate of the loader alone."""
        entry = self[setting]
        return _median(entry.supplies or [one.rate_per_s for one in entry.trials if one.kind == "L"])

    def note(self, trial: Trial) -> None:
        """Keeps a trial of the search."""
        entry = self[trial.setting]
        if trial.rate_per_s is None:
            entry.failure = trial.failure
        else:
            entry.trials.append(trial)
        self.batch_bytes = max(self.batch_bytes, trial.batch_bytes)

    def contender(self, setting: Setting, need: Need | None) -> Contender:
        """Returns what speaks for and against a setting that was confirmed."""
        entry = self[setting]
        is_present = setting == AS_IT_IS
        gain = entry.gain
        ratio = Interval(1.0, 1.0)
        if not is_present:
            ratio = (
                Interval(0.0, float("inf")) if gain is None else Interval(1 + gain.interval.low, 1 + gain.interval.high)
            )
        return Contender(
            setting=setting,
            cost=cost_of(self.facts, setting, batch_bytes=self.batch_bytes),
            supply_per_s=describe(entry.supplies).interval_per_s if entry.supplies else Interval(0.0, float("inf")),
            ratio=ratio,
            starved_share=_median([one.starved_share for one in entry.loops]),
            p99_wait_s=_median([one.p99_wait_s for one in entry.loops]),
            step_s=None if need is None else need.step_s,
            memory_bytes=entry.memory[0],
            shm_bytes=entry.memory[1],
            same_data="itself" if is_present else "unproven" if entry.proof is None else entry.proof.same_data,
        )

    def rows(self, finalists: Sequence[Setting], need: Need | None, limits: Limits) -> tuple[TriedRow, ...]:
        """Returns all that was tried: the present setting, finalists, the others by their rate."""
        first = [AS_IT_IS, *finalists]
        rest = sorted((one for one in self._entries if one not in first), key=lambda one: -(self._supply(one) or 0.0))
        return tuple(self._row(one, need, limits, is_finalist=one in finalists) for one in (*first, *rest))

    def _row(self, setting: Setting, need: Need | None, limits: Limits, *, is_finalist: bool) -> TriedRow:
        entry = self[setting]
        contender = self.contender(setting, need)
        supplies = tuple(
            entry.supplies or [one.rate_per_s for one in entry.trials if one.kind == "L" and one.rate_per_s]
        )
        return TriedRow(
            setting=setting,
            says=self.facts.describe(setting),
            cost=contender.cost,
            supply_per_s=statistics.median(supplies) if supplies else None,
            supplies_per_s=supplies,
            loop_per_s=_median([one.rate_per_s for one in entry.loops]),
            gain=entry.gain,
            speed=entry.speed,
            starved_share=contender.starved_share,
            p99_wait_s=contender.p99_wait_s,
            memory_bytes=contender.memory_bytes,
            shm_bytes=contender.shm_bytes,
            proof=entry.proof,
            is_flat=setting != AS_IT_IS and not entry.failure and self._is_flat(entry, is_finalist=is_finalist),
            failure=entry.failure,
            bars=bars(contender, None if need is None else need.rate_per_s, limits)
            if is_finalist or setting == AS_IT_IS
            else (),
        )

    def _is_flat(self, entry: Entry, *, is_finalist: bool) -> bool:
        if is_finalist and entry.speed:
            return entry.speed in {"same", "slower"}
        own = _median([one.rate_per_s for one in entry.trials])
        kind = entry.trials[-1].kind if entry.trials else "L"
        now = _median([one.rate_per_s for one in self[AS_IT_IS].trials if one.kind == kind])
        return own is not None and now is not None and own < now * (1 + FLAT)

    def _supply(self, setting: Setting) -> float | None:
        entry = self[setting]
        return _median(entry.supplies) or _median([one.rate_per_s for one in entry.trials])


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None
