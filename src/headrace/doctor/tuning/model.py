"""The result of tuning: everything that a report shows and a program reads. None: not measured; 0: measured zero."""

from __future__ import annotations

import dataclasses
import math

from headrace.doctor.evidence.equivalence import Difference
from headrace.doctor.statistics.interval import Interval
from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.choice import Choice, SameData
from headrace.doctor.tuning.cost import Cost
from headrace.doctor.tuning.facts import LoaderNow

__all__ = ["SCHEMA", "Edit", "Gain", "Need", "Proof", "TriedRow", "Tuning"]

SCHEMA = 1
UNBOUNDED = Interval(-1.0, math.inf)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A gain as a share: 0.32 = 32 % more samples per second."""

    value: float
    interval: Interval = UNBOUNDED
    """Where it will be found with 95 % confidence when it is measured again."""

    @property
    def percent(self) -> str:
        """`+32 % [29, 35]`."""
        if math.isinf(self.interval.high):
            return f"{self.value:+.0%}".replace("%", " %")
        return f"{100 * self.value:+.0f} % [{100 * self.interval.low:.0f}, {100 * self.interval.high:.0f}]"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What the loader has to supply."""

    rate_per_s: float
    """Samples per second, the margin included."""
    source: str
    """`given`, or the training step that it was measured with."""
    compute_per_s: float | None = None
    """Samples per second of the training step alone; None: the need was given."""
    step_s: float | None = None
    """Seconds of a step of it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a comparison with the present setting has shown about the data."""

    same_data: SameData
    says: str
    """`proven E0-E4 on all 40 samples, 2 epochs`; or the first difference; or why it could not be told."""
    first: Difference | None = None
    """None: nothing differs."""
    is_unfinished: bool = False
    """True: nothing but time was missing."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TriedRow:
    """One setting that was tried."""

    setting: Setting
    """What was changed of the present one; nothing: the present one."""
    says: str
    """`num_workers=2 -> 4`."""
    cost: Cost | None
    supply_per_s: float | None
    """Median rate of the loader alone."""
    supplies_per_s: tuple[float, ...] = ()
    """Of every round, in order."""
    loop_per_s: float | None = None
    """Rate of the loop with the training step; None: no step was given, or the setting was no finalist."""
    gain: Gain | None = None
    """Over the present setting, of confirmation rounds alone; None: it was no finalist, or is the present one."""
    speed: str = ""
    """Of a finalist: `same`, `faster`, `slower`, `inconclusive`."""
    starved_share: float | None = None
    p99_wait_s: float | None = None
    memory_bytes: int | None = None
    """Peak of the whole process tree, above what there was before."""
    shm_bytes: int | None = None
    proof: Proof | None = None
    """None: it did not come to that."""
    is_flat: bool = False
    """True: tried, and no faster than the present setting."""
    failure: str = ""
    """Why it could not be run."""
    bars: tuple[str, ...] = ()
    """What keeps it from being feasible."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The change as text."""

    line: str
    """To paste: `num_workers=4, prefetch_factor=4`."""
    back: str
    """The way back: the line as it was."""
    where: str = ""
    """`train.py:31`; empty: the call was not found."""
    diff: str = ""
    """Unified; empty: see `refused`."""
    refused: str = ""
    """Why the file is not changed by us; empty: it can be."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Everything."""

    spec: str
    command: str
    created: str
    facts: LoaderNow
    consumer: str
    is_emulated: bool
    seed: int
    budget_s: float
    used_s: float
    noise: str
    """Of the machine before: quiet, noisy, loud, unknown."""
    need: Need | None
    margin: float
    choice: Choice
    says: str
    """The change that was chosen: `num_workers=2 -> 4`; of a setting that is kept `as it is`."""
    gain: Gain | None
    """Expected of the change; None: nothing is changed."""
    tried: tuple[TriedRow, ...]
    """The present setting first, then finalists, then the others."""
    num_blocks: int
    """Of the confirmation: each setting ran twice in each."""
    floor: float | None
    """What two entries of the present setting may differ by, as a share; None: there was no confirmation."""
    edit: Edit | None
    left_out: tuple[str, ...] = ()
    """What was not done, and why."""
    applied: bool = False
    """True: the file was changed, and the target loaded again with the new setting."""
    schema: int = SCHEMA

    @property
    def exit_status(self) -> int:
        """0 keep it, or applied; 1 a better setting, not applied; 3 inconclusive."""
        if self.choice.outcome == "inconclusive":
            return 3
        return 1 if self.choice.outcome == "change" and not self.applied else 0

    def text(self, *, width: int = 80) -> str:
        """Returns what the command prints."""
        from headrace.doctor.tuning.text import render  # it knows this module

        return render(self, width=width)

    @property
    def flat(self) -> tuple[str, ...]:
        """Settings that were tried and are no faster."""
        return tuple(row.says for row in self.tried if row.is_flat)
