"""Gathers evidence: each probe runs once, in the order of an experienced engineer, and serves every rule.

    facts -> samples one by one (against the contract) -> a batch of them (against the contract) -> streams by worker

What cannot be gathered is missing with a reason; it never ends the rest.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Callable

from headrace.doctor.evidence import (
    CollateTrial,
    ContractCheck,
    Evidence,
    LoaderFacts,
    SampleReads,
    Violation,
    WorkerStreams,
)
from headrace.doctor.lab import Ending, Lab
from headrace.doctor.probes.collation import JoinSamples, choose_samples, try_collation
from headrace.doctor.probes.contracts import check_contract
from headrace.doctor.probes.facts import AskFacts, Introduction
from headrace.doctor.probes.reads import Prepared, ReadSamples, choose_indices, read_samples
from headrace.doctor.probes.streams import CompareStreams
from headrace.doctor.probes.targets import find_targets
from headrace.doctor.report.model import RunRow, StageRow
from headrace.errors import TargetError

__all__ = ["Gathering", "Wishes", "gather"]

Say = Callable[[str], None]
_KINDS: tuple[type[Evidence], ...] = (LoaderFacts, SampleReads, CollateTrial, ContractCheck, WorkerStreams)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How much to look at, and what the user says beforehand."""

    max_samples: int | None
    """Samples that are prepared one by one; None = all."""
    max_streamed: int
    """Samples that are taken of a stream, each way."""
    seed: int
    kinds: frozenset[type[Evidence]]
    """What the rules ask for; nothing else is run."""
    contract: str | os.PathLike[str] | None = None
    num_classes: int | None = None


@dataclasses.dataclass
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

    def note(self, name: str, ending: Ending, detail: str = "") -> None:
        """Adds a row for an experiment that was run."""
        self.runs.append(
            RunRow(name=name, outcome=ending.outcome, wall_s=ending.wall_s, detail=detail or _told(ending))
        )


def gather(lab: Lab, wishes: Wishes, say: Say) -> Gathering:
    """Runs every probe that fits the target.

    Raises:
        TargetError: TARGET cannot be loaded at all.
    """
    found = Gathering()
    say("loading the target")
    introduction = _introduce(lab, wishes, found)
    if introduction is None:
        return found
    found.missing |= dict.fromkeys(_KINDS, "no rule that was asked for needs it")
    violations = list(introduction.violations)
    if wishes.kinds & {SampleReads, CollateTrial, ContractCheck}:
        prepared = _read(lab, introduction, wishes, found, violations, say)
        if prepared is not None and wishes.kinds & {CollateTrial, ContractCheck}:
            _join(lab, introduction, wishes, prepared, found, violations, say)
        if prepared is not None:
            _check_contract(introduction, wishes, prepared, found, violations)
    if WorkerStreams in wishes.kinds:
        _stream(lab, introduction, wishes, found, say)
    return found


def _introduce(lab: Lab, wishes: Wishes, found: Gathering) -> Introduction | None:
    heard: list[Introduction] = []
    ending = lab.run(AskFacts(contract=_path(wishes)), heard.append)
    if lab.loading_s is not None:
        found.runs.append(RunRow(name="load target", outcome="done", wall_s=lab.loading_s))
    found.note("facts", ending)
    if not heard:
        found.missing |= dict.fromkeys(_KINDS, f"the loader did not say what it is: {_told(ending)}")
        return None
    found.introduction = heard[0]
    found.add(heard[0].facts)
    return heard[0]


def _read(
    lab: Lab, introduction: Introduction, wishes: Wishes, found: Gathering, violations: list[Violation], say: Say
) -> list[Prepared] | None:
    """Prepares samples one by one; None if there are none to be prepared."""
    facts = introduction.facts
    if facts.is_iterable or facts.num_samples is None:
        for kind in (SampleReads, CollateTrial, ContractCheck):
            found.missing[kind] = "the data set is a stream: its samples cannot be asked for one by one"
        return None
    limit = facts.num_samples if wishes.max_samples is None else wishes.max_samples
    indices = choose_indices(facts.num_samples, limit, wishes.seed)
    experiment = ReadSamples(indices=indices, seed=wishes.seed, contract=_path(wishes))
    try:
        prepared, ending = read_samples(lab, experiment, say)
    except TargetError as error:  # it was loaded once and is not loaded again
        found.missing[SampleReads] = f"the target could not be loaded again: {error.what}"
        return []
    detail = f"{len(prepared):,} of {len(indices):,} chosen samples, {facts.num_samples:,} in all"
    found.note("reads", ending, _with_troubles(detail, prepared, ending))
    if not prepared and indices:
        found.missing[SampleReads] = f"no sample was examined: {_told(ending)}"
        return []
    reads = tuple(one.read for one in prepared)
    num_classes, said_by = _num_classes(introduction, wishes)
    readable = [read for read in reads if read.outcome == "ok"]
    found.add(
        SampleReads(
            num_samples=facts.num_samples,
            reads=reads,
            is_full=len(reads) == facts.num_samples,
            num_classes=num_classes,
            num_classes_from=said_by,
            target_fields=introduction.target_fields or find_targets(readable, knows_classes=num_classes is not None),
        )
    )
    found.stages += _stage_rows(prepared)
    violations += [violation for one in prepared for violation in one.violations]
    return prepared


def _join(
    lab: Lab,
    introduction: Introduction,
    wishes: Wishes,
    prepared: list[Prepared],
    found: Gathering,
    violations: list[Violation],
    say: Say,
) -> None:
    size = introduction.facts.batch_size if introduction.joins_samples else 1
    chosen = choose_samples([one.read for one in prepared], size)
    if not chosen:
        found.missing[CollateTrial] = "no readable sample was found to join"
        return
    say("joining samples")
    experiment = JoinSamples(indices=chosen, seed=wishes.seed, contract=_path(wishes))
    try:
        joined, ending = try_collation(
            lab, experiment, collate=introduction.collate, is_default=introduction.has_default_collate
        )
    except TargetError as error:
        found.missing[CollateTrial] = f"the target could not be loaded again: {error.what}"
        return
    if joined is None:
        found.note("collation", ending)
        found.missing[CollateTrial] = f"the samples could not be joined for another reason: {_told(ending)}"
        return
    verb = "joined" if joined.trial.succeeded else "not joined"
    found.note("collation", ending, f"{len(chosen)} samples {verb} by {joined.trial.collate}")
    found.add(joined.trial)
    found.stages.append(StageRow(name="collate", num_samples=len(chosen), wall_s=joined.wall_s))
    violations += joined.violations


def _check_contract(
    introduction: Introduction,
    wishes: Wishes,
    prepared: list[Prepared],
    found: Gathering,
    violations: list[Violation],
) -> None:
    if not introduction.has_contract:
        found.missing[ContractCheck] = "there is no contract to hold the samples against (--contract FILE)"
        return
    num_checked = sum(one.read.outcome == "ok" for one in prepared)
    if not num_checked:
        found.missing[ContractCheck] = "no readable sample was found to hold against the contract"
        return
    found.add(check_contract(wishes.contract, num_checked, violations))


def _stream(lab: Lab, introduction: Introduction, wishes: Wishes, found: Gathering, say: Say) -> None:
    if not introduction.facts.is_iterable:
        found.missing[WorkerStreams] = "the data set is not a stream: a sampler shares its samples out to the workers"
        return
    say("comparing the workers' streams")
    heard: list[WorkerStreams] = []
    # Without workers the fault sleeps until somebody adds some: two show it.
    num_workers = introduction.facts.num_workers or 2
    lab.close()  # a process of its own, so that the workers inherit nothing from earlier probes
    try:
        ending = lab.run(
            CompareStreams(num_workers=num_workers, limit=wishes.max_streamed, seed=wishes.seed), heard.append
        )
    except TargetError as error:
        found.missing[WorkerStreams] = f"the target could not be loaded again: {error.what}"
        return
    found.note("streams", ending, f"one process against {num_workers} workers" if heard else "")
    if heard:
        found.add(heard[0])
    else:
        found.missing[WorkerStreams] = f"the streams could not be compared: {_told(ending)}"


def _path(wishes: Wishes) -> str | None:
    return None if wishes.contract is None else os.path.abspath(wishes.contract)  # noqa: PTH100 - the file as named


def _num_classes(introduction: Introduction, wishes: Wishes) -> tuple[int | None, str | None]:
    if wishes.num_classes is not None:
        return wishes.num_classes, "--num-classes"
    return introduction.classes or (None, None)


def _stage_rows(prepared: list[Prepared]) -> list[StageRow]:
    """Time by stage over the samples that told theirs, in the order in which samples enter the stages."""
    wall_s: dict[str, float] = collections.defaultdict(float)
    num_samples: collections.Counter[str] = collections.Counter()
    for one in prepared:
        num_samples.update(one.stage_s.keys())
        for stage, seconds in one.stage_s.items():
            wall_s[stage] += seconds
    return [StageRow(name=stage, num_samples=num_samples[stage], wall_s=seconds) for stage, seconds in wall_s.items()]


def _with_troubles(detail: str, prepared: list[Prepared], ending: Ending) -> str:
    counts = collections.Counter(one.read.outcome for one in prepared)
    troubles = [f"{counts[outcome]} {outcome}" for outcome in ("error", "stuck", "crashed") if counts[outcome]]
    return "; ".join([detail, *troubles, *([_told(ending)] if ending.outcome != "done" else [])])


def _told(ending: Ending) -> str:
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
