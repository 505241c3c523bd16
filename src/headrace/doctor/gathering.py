"""Gathers evidence: each probe runs once, in the order of an experienced engineer, and serves every rule.

    facts -> samples one by one (against the contract) -> a batch of them (against the contract) -> streams by worker

What cannot be gathered is missing with a reason; it never ends the rest.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Sequence

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
from headrace.doctor.probes.stream_reads import ReadStream, Walked, read_stream
from headrace.doctor.probes.streams import CompareStreams
from headrace.doctor.probes.targets import find_targets
from headrace.doctor.report.model import RunRow, StageRow

__all__ = ["Gathering", "Wishes", "gather"]

_KINDS: tuple[type[Evidence], ...] = (LoaderFacts, SampleReads, CollateTrial, ContractCheck, WorkerStreams)


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
        told = "; ".join(filter(None, [detail, _told(ending)]))
        self.runs.append(RunRow(name=name, outcome=ending.outcome, wall_s=ending.wall_s, detail=told))


def gather(lab: Lab, wishes: Wishes, say: Callable[[str], None]) -> Gathering:
    """Runs every probe that the rules need and that fits the target.

    Raises:
        TargetError: TARGET cannot be loaded.
    """
    found = Gathering()
    say("loading the target")
    heard: list[Introduction] = []
    ending = lab.run(AskFacts(contract=wishes.contract), heard.append)
    if lab.loading_s is not None:
        found.runs.append(RunRow(name="load target", outcome="done", wall_s=lab.loading_s))
    found.note("facts", ending)
    if not heard:
        found.lacks(_KINDS, f"the loader did not say what it is: {_told(ending)}")
        return found
    found.introduction = heard[0]
    found.add(heard[0].facts)
    found.lacks(_KINDS, "no rule that was asked for needs it")
    _Round(lab, wishes, say, found, heard[0]).run()
    return found


class _Round:
    """The probes after the introduction, one after another."""

    def __init__(
        self, lab: Lab, wishes: Wishes, say: Callable[[str], None], found: Gathering, introduction: Introduction
    ) -> None:
        self._lab, self._wishes, self._say, self._found = lab, wishes, say, found
        self._introduction = introduction
        self._facts = introduction.facts
        self._violations: list[Violation] = list(introduction.violations)
        self._walked: Walked | None = None
        self._is_stream = self._facts.is_iterable or self._facts.num_samples is None

    def run(self) -> None:
        kinds = self._wishes.kinds
        if kinds & {SampleReads, CollateTrial, ContractCheck}:
            prepared = self._read_stream() if self._is_stream else self._read_samples(self._facts.num_samples or 0)
            if kinds & {CollateTrial, ContractCheck}:
                self._join_samples(prepared)
            self._check_contract(sum(one.read.outcome == "ok" for one in prepared))
        if WorkerStreams in kinds:
            self._compare_streams()

    def _read_samples(self, num_samples: int) -> list[Prepared]:
        wishes = self._wishes
        limit = num_samples if wishes.max_samples is None else wishes.max_samples
        indices = choose_indices(num_samples, limit, wishes.seed)
        experiment = ReadSamples(indices=indices, seed=wishes.seed, contract=wishes.contract)
        prepared, ending = read_samples(self._lab, experiment, self._say)
        self._found.note("reads", ending, _describe_reads(prepared, len(indices), num_samples))
        if not prepared and indices:
            self._found.lacks([SampleReads], f"no sample was examined: {_told(ending)}")
            return []
        self._keep_reads(prepared, num_samples)
        return prepared

    def _read_stream(self) -> Sequence[Prepared]:
        wishes = self._wishes
        experiment = ReadStream(limit=wishes.max_samples, seed=wishes.seed, contract=wishes.contract)
        walked = read_stream(self._lab, experiment, self._say)
        self._found.note("reads", walked.ending, walked.detail)
        self._walked = walked
        if not walked.prepared and not walked.is_whole:
            self._found.lacks([SampleReads], f"no sample was examined: {_told(walked.ending)}")
            return []
        self._keep_reads(walked.prepared, walked.num_samples)
        return walked.prepared

    def _keep_reads(self, prepared: Sequence[Prepared], num_samples: int) -> None:
        self._found.add(self._make_reads(prepared, num_samples))
        self._found.stages += _stage_rows(prepared)
        self._violations += [violation for one in prepared for violation in one.violations]

    def _make_reads(self, prepared: Sequence[Prepared], num_samples: int) -> SampleReads:
        reads = tuple(one.read for one in prepared)
        num_classes, said_by = self._introduction.classes or (None, None)
        if self._wishes.num_classes is not None:
            num_classes, said_by = self._wishes.num_classes, "--num-classes"
        readable = [read for read in reads if read.outcome == "ok"]
        targets = self._introduction.target_fields
        return SampleReads(
            num_samples=num_samples,
            reads=reads,
            is_full=len(reads) == num_samples,
            is_stream=self._is_stream,
            num_classes=num_classes,
            num_classes_from=said_by,
            target_fields=targets or find_targets(readable, knows_classes=num_classes is not None),
        )

    def _join_samples(self, prepared: Sequence[Prepared]) -> None:
        size = self._facts.batch_size if self._introduction.joins_samples else 1
        chosen = choose_samples([one.read for one in prepared], size)
        if not chosen:
            self._found.lacks([CollateTrial], "no readable sample was found to join")
            return
        self._say("joining samples")
        join = JoinSamples if self._walked is None else self._walked.joining
        joined, ending = try_collation(
            self._lab,
            join(indices=chosen, seed=self._wishes.seed, contract=self._wishes.contract),
            collate=self._introduction.collate,
            is_default=self._introduction.has_default_collate,
        )
        if joined is None:
            self._found.note("collation", ending)
            why = _told(ending) or "another pass delivered none"
            self._found.lacks([CollateTrial], f"the samples were not joined: {why}")
            return
        verb = "joined" if joined.trial.succeeded else "not joined"
        self._found.note("collation", ending, f"{len(chosen)} samples {verb} by {joined.trial.collate}")
        self._found.add(joined.trial)
        self._found.stages.append(StageRow(name="collate", num_samples=len(chosen), wall_s=joined.wall_s))
        self._violations += joined.violations

    def _check_contract(self, num_readable: int) -> None:
        if not self._introduction.has_contract:
            self._found.lacks([ContractCheck], "there is no contract to hold the samples against (--contract FILE)")
        elif not num_readable:
            self._found.lacks([ContractCheck], "no readable sample was found to hold against the contract")
        else:
            self._found.add(check_contract(self._wishes.contract, num_readable, self._violations))

    def _compare_streams(self) -> None:
        if not self._facts.is_iterable:
            self._found.lacks([WorkerStreams], "the data set is not a stream: a sampler shares its samples out")
            return
        if "streams" in self._introduction.cannot:
            self._found.lacks([WorkerStreams], self._introduction.cannot["streams"])
            return
        if self._walked is not None and self._walked.has_failed:
            self._found.lacks([WorkerStreams], "the stream fails before its end, already in one process")
            return
        self._say("comparing the workers' streams")
        # Without workers the fault sleeps until somebody adds some: two show it.
        num_workers = self._facts.num_workers or 2
        self._lab.close()  # a process of its own, so that the workers inherit nothing from earlier probes
        heard: list[WorkerStreams] = []
        experiment = CompareStreams(num_workers=num_workers, limit=self._wishes.max_streamed, seed=self._wishes.seed)
        ending = self._lab.run(experiment, heard.append)
        if ending.outcome == "failed" and not self._facts.num_workers:
            # They are not the user's: that some streams cannot be shared out is no trouble of this loader.
            self._found.lacks([WorkerStreams], f"the loader has no workers, and two cannot walk it: {_told(ending)}")
            return
        self._found.note("streams", ending, f"one process against {num_workers} workers")
        if heard:
            self._found.add(heard[0])
        else:
            self._found.lacks([WorkerStreams], f"the streams could not be compared: {_told(ending)}")


def _stage_rows(prepared: Sequence[Prepared]) -> list[StageRow]:
    """Time by stage over the samples that told theirs, in the order in which samples enter the stages."""
    wall_s: dict[str, float] = collections.defaultdict(float)
    num_samples: collections.Counter[str] = collections.Counter()
    for one in prepared:
        num_samples.update(one.stage_s.keys())
        for stage, seconds in one.stage_s.items():
            wall_s[stage] += seconds
    return [StageRow(name=stage, num_samples=num_samples[stage], wall_s=seconds) for stage, seconds in wall_s.items()]


def _describe_reads(prepared: Sequence[Prepared], num_chosen: int, num_samples: int) -> str:
    """`64 of 64 chosen samples, 1,797 in all; 1 error`."""
    counts = collections.Counter(one.read.outcome for one in prepared)
    troubles = [f"{counts[outcome]} {outcome}" for outcome in ("error", "stuck", "crashed") if counts[outcome]]
    return "; ".join([f"{len(prepared):,} of {num_chosen:,} chosen samples, {num_samples:,} in all", *troubles])


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
