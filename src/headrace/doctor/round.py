"""What the steps of one diagnosis share: the lab, the wishes, what is known so far, and where evidence goes.

gathering.py ── introduces, reads, joins, then ──▶ every Step of `experiments/` whose evidence a rule asks for
Step.run(round) ── round.ask(experiment) ──▶ lab ──▶ child
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from headrace.doctor.evidence import Evidence, LoaderFacts
from headrace.doctor.lab.outside import Ending, Experiment, Lab
from headrace.doctor.probes.facts import Introduction
from headrace.doctor.probes.reads import Prepared
from headrace.doctor.report.model import RunRow, StageRow

__all__ = ["Gathering", "Round", "Step", "Wishes", "told"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How much to look at, and what the user says beforehand."""

    kinds: frozenset[type[Evidence]]
    """What the rules ask for; nothing else is run."""
    max_samples: int | None
    """Samples that are prepared one by one; None = all."""
    max_streamed: int
    """Samples that are taken of a stream, each way."""
    seed: int
    contract: str | None = None
    """Path of a contract file."""
    num_classes: int | None = None
    quick: bool = False
    """True: the user wants an answer in seconds; experiments look at less, and those that cost most are left out."""
    walk_s: float = 8.0
    """Seconds that one walk through a loader may take in an experiment, its first batch not counted."""
    spec: str = ""
    """TARGET as typed, for what is read in its source; empty: an object that has no file."""
    ranks: int = 2
    """Ranks that are simulated."""
    runs_ranks: bool = False
    """True: they are run as processes, too."""


@dataclasses.dataclass(slots=True)
class Gathering:
    """What was found out, and why the rest was not."""

    evidence: dict[type[Evidence], Evidence] = dataclasses.field(default_factory=dict)
    missing: dict[type[Evidence], str] = dataclasses.field(default_factory=dict)
    """Reason why a kind of evidence is not there."""
    runs: list[RunRow] = dataclasses.field(default_factory=list)
    stages: list[StageRow] = dataclasses.field(default_factory=list)
    introduction: Introduction | None = None

    def add(self, found: Evidence) -> None:
        """Keeps evidence under its type."""
        self.evidence[type(found)] = found

    def lacks(self, kinds: Iterable[type[Evidence]], reason: str) -> None:
        """Says why kinds of evidence are not there."""
        self.missing |= dict.fromkeys(kinds, reason)

    def note(self, name: str, ending: Ending, detail: str = "") -> None:
        """Adds a row for an experiment that was run."""
        text = "; ".join(filter(None, [detail, told(ending)]))
        self.runs.append(RunRow(name=name, outcome=ending.outcome, wall_s=ending.wall_s, detail=text))


class Round:
    """One loader under examination."""

    def __init__(
        self,
        lab: Lab,
        wishes: Wishes,
        say: Callable[[str], None],
        found: Gathering,
        introduction: Introduction,
        *,
        split: str = "",
    ) -> None:
        self.lab, self.wishes, self.say, self.found = lab, wishes, say, found
        self.introduction = introduction
        self.split = split
        """Name of the loader under examination, where TARGET has several: train, val, ...; empty: the only one."""
        self._prepared: Sequence[Prepared] | None = None

    @property
    def prepared(self) -> Sequence[Prepared]:
        """The samples that were prepared one by one, in data set order; empty for what has none.

        Prepared when they are first asked for: what no rule and no step asks for is not run.
        """
        if self._prepared is None:
            self._prepared = ()  # a step that is run meanwhile does not ask again
            self._prepared = self._prepare()
        return self._prepared

    def _prepare(self) -> Sequence[Prepared]:
        """Prepares them."""
        return ()

    @property
    def is_companion(self) -> bool:
        """True for a loader that TARGET names beside the training loader."""
        return bool(self.split) and self.split != next(iter(self.introduction.splits), "")

    @property
    def facts(self) -> LoaderFacts:
        """What the loader says of itself."""
        return self.introduction.facts

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self.lab.left_s

    def ask(self, experiment: Experiment, *, alone: bool = False) -> tuple[list[Any], Ending]:
        """Runs one experiment in the lab; returns its records and how it ended. Notes nothing.

        Args:
            experiment: What to run.
            alone: True: in a child that has served no other experiment (after one that walked, drew or started
                workers, the loader is no longer as the user made it).
        """
        if alone:
            self.lab.close()
        records: list[Any] = []
        return records, self.lab.run(experiment, records.append)

    def gather(self, experiment: Experiment, kind: type[Evidence], *, detail: str = "", alone: bool = False) -> Ending:
        """Runs an experiment that yields one record of evidence; keeps it, or says why there is none."""
        self.say(experiment.name)
        records, ending = self.ask(experiment, alone=alone)
        self.found.note(experiment.name, ending, detail)
        for record in records:
            if isinstance(record, kind):
                self.found.add(record)
        if not any(isinstance(record, kind) for record in records):
            self.found.lacks([kind], f"{experiment.name}: {told(ending) or 'it had nothing to tell'}")
        return ending


class Step(Protocol):
    """One experiment's place in a diagnosis. A module of `experiments/` holds one, under the name STEP."""

    place: int
    """Steps run in this order: 100 samples and batches in one process, 200 reading source and objects, 300 samplers,
    400 workers, 500 epochs, 600 memory and time. What may disturb comes later."""
    gives: tuple[type[Evidence], ...]
    """Kinds of evidence that it may add; it is run only if a rule asks for one of them."""
    every_split: bool
    """True: run for each loader of TARGET; False: for the first (training) loader only."""

    def run(self, round_: Round) -> None:
        """Adds each kind it gives to `round_.found`, or says with `lacks` why not. Fits itself into `round_.left_s`."""
        ...


def told(ending: Ending) -> str:
    """One line on how an experiment ended otherwise than well; empty if it ended well."""
    in_hand = ""
    if ending.mark is not None:
        sample = "" if ending.mark.sample_id is None else f" with sample {ending.mark.sample_id}"
        in_hand = f"{sample} in stage {ending.mark.stage}"
    at = f", at {ending.at}" if ending.at else ""
    return {
        "done": "",
        "failed": f"{ending.cause}{at}",
        "stuck": f"no answer for {ending.mark_s:.0f} s{in_hand}{at}",
        "crashed": f"the interpreter ended ({ending.cause}){in_hand}{at}",
        "over-budget": f"over budget{in_hand}{at}",
    }[ending.outcome]
