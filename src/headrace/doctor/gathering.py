"""Gathers evidence: each probe runs once, in the order of an experienced engineer, and serves every rule.

    facts -> samples one by one (against the contract) -> a batch of them (against the contract) -> streams by worker
          -> the steps of `experiments/`, in the order of their places

What cannot be gathered is missing with a reason; it never ends the rest.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

from headrace.doctor.evidence import (
    CollateTrial,
    ContractCheck,
    Evidence,
    LoaderFacts,
    SampleReads,
    Violation,
    WorkerStreams,
)
from headrace.doctor.experiments import steps
from headrace.doctor.lab.outside import Lab
from headrace.doctor.probes.collation import JoinSamples, choose_samples, try_collation
from headrace.doctor.probes.contracts import check_contract
from headrace.doctor.probes.facts import AskFacts, Introduction
from headrace.doctor.probes.reads import Prepared, ReadSamples, choose_indices, read_samples
from headrace.doctor.probes.reads_again import (
    MAX_READ_AGAIN,
    ReadAgain,
    ReadFailuresAgain,
    with_readings_again,
)
from headrace.doctor.probes.stream_reads import ReadStream, Walked, read_stream
from headrace.doctor.probes.streams import CompareStreams
from headrace.doctor.probes.targets import find_targets
from headrace.doctor.report.model import RunRow, StageRow
from headrace.doctor.round import Gathering, Round, Wishes, told

__all__ = ["Gathering", "Wishes", "gather"]

_KINDS: tuple[type[Evidence], ...] = (LoaderFacts, SampleReads, CollateTrial, ContractCheck, WorkerStreams)


def gather(lab: Lab, wishes: Wishes, say: Callable[[str], None], split: str = "") -> Gathering:
    """Runs every probe that the rules need and that fits one loader of the target.

    Args:
        lab: Where the target is loaded.
        wishes: How much to look at.
        say: Told, in a few words, what is being done.
        split: Name of the loader, where the target has several; empty: the only or first one.

    Raises:
        TargetError: TARGET cannot be loaded.
    """
    found = Gathering()
    lab.split = split
    say("loading the target")
    heard: list[Introduction] = []
    ending = lab.run(AskFacts(contract=wishes.contract), heard.append)
    if lab.loading_s is not None and not split:
        found.runs.append(RunRow(name="load target", outcome="done", wall_s=lab.loading_s))
    found.note("facts", ending)
    if not heard:
        found.lacks(_KINDS, f"the loader did not say what it is: {told(ending)}")
        return found
    found.introduction = heard[0]
    found.add(heard[0].facts)
    kinds = [*_KINDS, *(kind for step in steps() for kind in step.gives)]
    found.lacks([kind for kind in kinds if kind is not LoaderFacts], "no rule that was asked for needs it")
    _Round(lab, wishes, say, found, heard[0], split=split).run()
    return found


class _Round(Round):
    """The probes after the introduction, one after another, then the steps of `experiments/`."""

    def run(self) -> None:
        """Gathers everything that a rule asks for."""
        kinds = self.wishes.kinds
        self._violations: list[Violation] = list(self.introduction.violations)
        self._walked: Walked | None = None
        self._is_stream = self.facts.is_iterable or self.facts.num_samples is None
        if kinds & {SampleReads, CollateTrial, ContractCheck}:
            prepared = self.prepared
            if kinds & {CollateTrial, ContractCheck}:
                self._join_samples(prepared)
            self._check_contract(sum(one.read.outcome == "ok" for one in prepared))
        if WorkerStreams in kinds:
            self._compare_streams()
        for step in steps():
            if kinds.isdisjoint(step.gives):
                continue
            if self.is_companion and not step.every_split:
                self.found.lacks(step.gives, "it is looked at for the training loader")
            elif self.left_s <= 0:
                self.found.lacks(step.gives, "the budget was spent before")
            else:
                step.run(self)

    def _prepare(self) -> Sequence[Prepared]:
        return self._read_stream() if self._is_stream else self._read_samples(self.facts.num_samples or 0)

    def _read_samples(self, num_samples: int) -> list[Prepared]:
        wishes = self.wishes
        limit = num_samples if wishes.max_samples is None else wishes.max_samples
        indices = choose_indices(num_samples, limit, wishes.seed)
        experiment = ReadSamples(indices=indices, seed=wishes.seed, contract=wishes.contract)
        prepared, ending = read_samples(self.lab, experiment, self.say)
        self.found.note("reads", ending, _describe_reads(prepared, len(indices), num_samples))
        if not prepared and indices:
            self.found.lacks([SampleReads], f"no sample was examined: {told(ending)}")
            return []
        prepared = self._read_again(prepared)
        self._keep_reads(prepared, num_samples)
        return prepared

    def _read_again(self, prepared: list[Prepared]) -> list[Prepared]:
        """The same, with what came of reading again what failed: in the child that it failed in."""
        failing = [one.read.index for one in prepared if one.read.outcome == "error"][:MAX_READ_AGAIN]
        if not failing:
            return prepared
        self.say("reading failures again")
        limit_s = min(self.wishes.walk_s / 2, self.left_s / 8)
        again: list[ReadAgain] = []
        experiment = ReadFailuresAgain(indices=failing, seed=self.wishes.seed, limit_s=limit_s)
        ending = self.lab.run(experiment, again.append)
        self.found.note(experiment.name, ending, f"{len(again)} samples")
        return with_readings_again(prepared, again)

    def _read_stream(self) -> Sequence[Prepared]:
        wishes = self.wishes
        experiment = ReadStream(limit=wishes.max_samples, seed=wishes.seed, contract=wishes.contract)
        walked = read_stream(self.lab, experiment, self.say)
        self.found.note("reads", walked.ending, walked.detail)
        self._walked = walked
        if walked.is_whole and not walked.prepared:
            self.found.add(dataclasses.replace(self.facts, yields_nothing=True))
        if not walked.prepared and not walked.is_whole:
            self.found.lacks([SampleReads], f"no sample was examined: {told(walked.ending)}")
            return []
        self._keep_reads(walked.prepared, walked.num_samples)
        return walked.prepared

    def _keep_reads(self, prepared: Sequence[Prepared], num_samples: int) -> None:
        self.found.add(self._make_reads(prepared, num_samples))
        self.found.stages += _stage_rows(prepared)
        self._violations += [violation for one in prepared for violation in one.violations]

    def _make_reads(self, prepared: Sequence[Prepared], num_samples: int) -> SampleReads:
        reads = tuple(one.read for one in prepared)
        num_classes, said_by = self.introduction.classes or (None, None)
        if self.wishes.num_classes is not None:
            num_classes, said_by = self.wishes.num_classes, "--num-classes"
        readable = [read for read in reads if read.outcome == "ok"]
        targets = self.introduction.target_fields
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
        size = self.facts.batch_size if self.introduction.joins_samples else 1
        chosen = choose_samples([one.read for one in prepared], size)
        if not chosen:
            self.found.lacks([CollateTrial], "no readable sample was found to join")
            return
        self.say("joining samples")
        join = JoinSamples if self._walked is None else self._walked.joining
        joined, ending = try_collation(
            self.lab,
            join(indices=chosen, seed=self.wishes.seed, contract=self.wishes.contract),
            collate=self.introduction.collate,
            is_default=self.introduction.has_default_collate,
        )
        if joined is None:
            self.found.note("collation", ending)
            why = told(ending) or "another pass delivered none"
            self.found.lacks([CollateTrial], f"the samples were not joined: {why}")
            return
        verb = "joined" if joined.trial.succeeded else "not joined"
        self.found.note("collation", ending, f"{len(chosen)} samples {verb} by {joined.trial.collate}")
        self.found.add(joined.trial)
        self.found.stages.append(StageRow(name="collate", num_samples=len(chosen), wall_s=joined.wall_s))
        self._violations += joined.violations

    def _check_contract(self, num_readable: int) -> None:
        if not self.introduction.has_contract:
            self.found.lacks([ContractCheck], "there is no contract to hold the samples against (--contract FILE)")
        elif not num_readable:
            self.found.lacks([ContractCheck], "no readable sample was found to hold against the contract")
        else:
            self.found.add(check_contract(self.wishes.contract, num_readable, self._violations))

    def _compare_streams(self) -> None:
        if not self.facts.is_iterable:
            self.found.lacks([WorkerStreams], "the data set is not a stream: a sampler shares its samples out")
            return
        if "streams" in self.introduction.cannot:
            self.found.lacks([WorkerStreams], self.introduction.cannot["streams"])
            return
        if self._walked is not None and self._walked.has_failed:
            self.found.lacks([WorkerStreams], "the stream fails before its end, already in one process")
            return
        self.say("comparing the workers' streams")
        # Without workers the fault sleeps until somebody adds some: two show it.
        num_workers = self.facts.num_workers or 2
        self.lab.close()  # a process of its own, so that the workers inherit nothing from earlier probes
        heard: list[WorkerStreams] = []
        experiment = CompareStreams(
            num_workers=num_workers,
            limit=self.wishes.max_streamed,
            seed=self.wishes.seed,
        )
        ending = self.lab.run(experiment, heard.append)
        if ending.outcome == "failed" and not self.facts.num_workers:
            # They are not the user's: that some streams cannot be shared out is no trouble of this loader.
            self.found.lacks([WorkerStreams], f"the loader has no workers, and two cannot walk it: {told(ending)}")
            return
        self.found.note("streams", ending, f"one process against {num_workers} workers")
        if heard:
            self.found.add(dataclasses.replace(heard[0], num_own_workers=self.facts.num_workers))
        else:
            self.found.lacks([WorkerStreams], f"the streams could not be compared: {told(ending)}")


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
