"""Diagnoses a loader: gathers evidence once, lets every rule judge, and makes the report."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from headrace import __version__
from headrace.contract import Contract
from headrace.doctor.evidence import Evidence, SampleReads, WorkerStreams
from headrace.doctor.gathering import Gathering, Wishes, gather
from headrace.doctor.judging import SEVERITIES, judge, standing
from headrace.doctor.lab.launch import ForkOfCaller
from headrace.doctor.lab.outside import Budget, Lab
from headrace.doctor.report.environment import describe_environment
from headrace.doctor.report.model import FindingRow, Report
from headrace.doctor.rule import Rule
from headrace.doctor.subject.target import check
from headrace.errors import ConfigurationError

__all__ = ["Options", "diagnose"]

QUICK_SAMPLES = 16
"""Enough for the first, the last and a few between; most faults that concern every sample show in one."""
FEWEST_READABLE = 5
"""Fewer samples than this, out of more, prove nothing by their silence: one odd sample has no others to differ from."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to examine.

    Raises:
        ConfigurationError: options that cannot be meant.
    """

    budget_s: float = 90.0
    """Seconds for all experiments together; what is left out then is reported as skipped."""
    per_sample_s: float = 10.0
    """Seconds after which a sample is stuck. Some hundred times what reading and decoding one usually takes."""
    full: bool = False
    """Try every sample."""
    quick: bool = False
    """Try few samples."""
    max_samples: int = 64
    """Samples to try otherwise: some seconds of decoding; 1 % of bad samples is met with a chance of one half."""
    select: Sequence[str] = ()
    """Codes, or beginnings of codes, of the only rules to judge; empty = all."""
    ignore: Sequence[str] = ()
    """Codes, or beginnings of codes, of rules to leave out."""
    contract: str | os.PathLike[str] | None = None
    """File of a contract to hold the samples against. Default: the one that the loader carries, if any."""
    num_classes: int | None = None
    """Number of classes. Default: what the data set says."""
    ranks: int = 2
    """Ranks of a distributed run to pretend to be, where the source speaks of ranks; TARGET's own number comes first."""
    runs_ranks: bool = False
    """Run the ranks as processes of one group, too; whether the source speaks of ranks or not."""
    seed: int = 0
    """Chooses the spread of samples, and seeds the global generators before each."""

    def __post_init__(self) -> None:
        if self.budget_s <= 0 or self.per_sample_s <= 0:
            raise ConfigurationError(f"budget_s={self.budget_s:g}, per_sample_s={self.per_sample_s:g}: seconds above 0")
        if self.max_samples < 1:
            raise ConfigurationError(f"max_samples={self.max_samples}: at least 1")
        if self.ranks < 2:
            raise ConfigurationError(f"ranks={self.ranks}: at least 2, to compare them")
        if self.full and self.quick:
            raise ConfigurationError("full and quick exclude each other: all samples, or few")

    def wishes(self, kinds: Iterable[type[Evidence]], *, spec: str = "") -> Wishes:
        """Returns what they mean for the probes, if the rules ask for these kinds of evidence."""
        limit = min(self.max_samples, QUICK_SAMPLES) if self.quick else self.max_samples
        return Wishes(
            max_samples=None if self.full else limit,
            max_streamed=200 if self.quick else 2000,
            seed=self.seed,
            quick=self.quick,
            walk_s=2.0 if self.quick else 8.0,
            spec=spec,
            kinds=frozenset(kinds),
            contract=None if self.contract is None else os.fspath(self.contract),
            num_classes=self.num_classes,
            ranks=self.ranks,
            runs_ranks=self.runs_ranks,
        )


def diagnose(
    target: Any,
    options: Options | None = None,
    *,
    command: str,
    progress: Callable[[str], None] | None = None,
    rules: Iterable[Rule] | None = None,
) -> Report:
    """Examines a loader or data set in a child process and returns the report.

    Args:
        target: TARGET: `train.py:make_loader`, or `package.module:attribute`; or a loader or data set itself, which is
            then examined in forks of this process.
        options: How to examine.
        command: What was typed, for the report.
        progress: Told, in a few words, what is being done.
        rules: Rules to judge. Default: those of the catalogue that `options` select.

    Raises:
        TargetError: TARGET cannot be loaded, or is nothing that can be examined.
        ConfigurationError: no rule has a selected code.
        ContractFileError: the contract file cannot be read.

    Whatever the user's code does in the child, this process goes on; afterwards nothing that was started is left.
    """
    options = options or Options()
    is_spec = isinstance(target, str)
    check(target, do="headrace diagnose train.py:make_loader")
    target_spec = target if is_spec else _name_of(target)
    if options.contract is not None:
        Contract.load(options.contract)  # a misspelt key should not wait for the data
    chosen = tuple(rules) if rules is not None else _catalogue(options)
    created = dt.datetime.now(dt.UTC).astimezone().isoformat(timespec="seconds")
    launcher = None if is_spec else ForkOfCaller(target)
    budget = Budget(options.budget_s)
    with Lab(target_spec, budget=budget, per_sample_s=options.per_sample_s, launcher=launcher) as lab:
        wishes = options.wishes((kind for rule in chosen for kind in rule.needs), spec=target_spec if is_spec else "")
        gathered = gather(lab, wishes, progress or _say_nothing)
        splits = gathered.introduction.splits if gathered.introduction else ()
        others = {name: gather(lab, wishes, progress or _say_nothing, name) for name in splits[1:]}
    findings, skipped, cleared = judge(chosen, gathered.evidence, gathered.missing, splits[0] if others else None)
    for name, companion in others.items():
        _add_companion(name, companion, chosen, gathered, findings)
    if not options.select:
        findings = standing(chosen, findings)
    findings.sort(key=lambda row: (SEVERITIES.index(row.severity), row.code))
    # Whatever was selected: rules that ask other experiments are silent, too, about a loader that delivers nothing.
    needs_samples = SampleReads in gathered.evidence or any(SampleReads in rule.needs for rule in chosen)
    is_conclusive = bool(cleared) and (not needs_samples or _saw_enough(gathered))
    return Report(
        tool=f"headrace {__version__}",
        created=created,
        command=command,
        environment=describe_environment(),
        target=_describe_target(target_spec, gathered),
        findings=findings,
        runs=gathered.runs,
        stages=gathered.stages,
        skipped=skipped,
        cleared=cleared,
        verdict="findings" if findings else "clean" if is_conclusive else "inconclusive",
        is_conclusive=is_conclusive,
    )


def _name_of(target: Any) -> str:
    """How a report calls an object: by its class."""
    kind = type(target)
    return f"this {kind.__name__}" if kind.__name__ != "dict" else "these loaders"


def _catalogue(options: Options) -> tuple[Rule, ...]:
    from headrace.doctor.catalogue import rules
    from headrace.doctor.occasions import is_diagnosed

    chosen = rules(options.select, options.ignore)
    kept = tuple(rule for rule in chosen if is_diagnosed(rule))
    if chosen and not kept:
        raise ConfigurationError(
            f"{', '.join(rule.code for rule in chosen)}: only a running script shows that",
            do=["headrace watch train.py", "headrace diagnose --resume train.py:train    for HR907 to HR909"],
        )
    return kept


def _say_nothing(_: str) -> None:
    """Nobody listens."""


def _add_companion(
    name: str, companion: Gathering, rules: Iterable[Rule], gathered: Gathering, findings: list[FindingRow]
) -> None:
    """Adds what was found in another loader of TARGET, and its runs. What the first one has too is said once."""
    known = {(row.code, row.message) for row in findings}
    found, _, _ = judge(rules, companion.evidence, companion.missing, name)
    findings += [row for row in found if (row.code, row.message) not in known]
    gathered.runs += [msgspec.structs.replace(run, name=f"{name}: {run.name}") for run in companion.runs]


def _describe_target(spec: str, gathered: Gathering) -> dict[str, Any]:
    reads = gathered.evidence.get(SampleReads)
    examined = len(reads.reads) if isinstance(reads, SampleReads) else None
    described: dict[str, Any] = {"spec": spec}
    if gathered.introduction is not None:
        facts = gathered.introduction.facts
        described |= {
            "kind": facts.kind,
            "dataset": gathered.introduction.dataset_kind,
            "inside": list(dict.fromkeys(gathered.introduction.dataset_layers[1:])),
            "num_samples": _num_samples(facts.num_samples, reads),
            "batch_size": facts.batch_size,
            "num_workers": facts.num_workers,
            "collate": gathered.introduction.collate,
        }
    return described | {"examined": examined}


def _num_samples(said: int | None, reads: Evidence | None) -> int | None:
    """What the data set says; of a stream that was seen to end, what came out."""
    if isinstance(reads, SampleReads) and reads.is_stream:
        return reads.num_samples if reads.is_full else None
    return said


def _saw_enough(gathered: Gathering) -> bool:
    """False if silence means nothing, since hardly anything could be looked at."""
    reads = gathered.evidence.get(SampleReads)
    if isinstance(reads, SampleReads):
        return len(reads.ok) >= min(FEWEST_READABLE, reads.num_samples) and len(reads.ok) > 0
    return WorkerStreams in gathered.evidence
