"""Diagnoses a loader: gathers evidence once, lets every rule judge, and makes the report."""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from headrace import __version__
from headrace.contract import Contract
from headrace.doctor.environment import describe_environment
from headrace.doctor.evidence import Evidence, SampleReads, WorkerStreams
from headrace.doctor.gathering import Gathering, Wishes, gather
from headrace.doctor.lab import Budget, Lab
from headrace.doctor.report.model import ChosenFix, FindingRow, Report, SkippedRow
from headrace.doctor.rule import Finding, Rule
from headrace.doctor.target import check_spec
from headrace.errors import ConfigurationError

__all__ = ["Options", "diagnose"]

_SEVERITIES = ("error", "warning", "info")
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
    seed: int = 0
    """Chooses the spread of samples, and seeds the global generators before each."""

    def __post_init__(self) -> None:
        if self.budget_s <= 0 or self.per_sample_s <= 0:
            raise ConfigurationError(f"budget_s={self.budget_s:g}, per_sample_s={self.per_sample_s:g}: seconds above 0")
        if self.max_samples < 1:
            raise ConfigurationError(f"max_samples={self.max_samples}: at least 1")
        if self.full and self.quick:
            raise ConfigurationError("full and quick exclude each other: all samples, or few")

    def wishes(self, kinds: Iterable[type[Evidence]]) -> Wishes:
        """Returns what they mean for the probes, if the rules ask for these kinds of evidence."""
        limit = min(self.max_samples, QUICK_SAMPLES) if self.quick else self.max_samples
        return Wishes(
            max_samples=None if self.full else limit,
            max_streamed=200 if self.quick else 2000,
            seed=self.seed,
            kinds=frozenset(kinds),
            contract=None if self.contract is None else os.fspath(self.contract),
            num_classes=self.num_classes,
        )


def diagnose(
    target_spec: str,
    options: Options | None = None,
    *,
    command: str,
    progress: Callable[[str], None] | None = None,
    rules: Iterable[Rule] | None = None,
) -> Report:
    """Examines a loader or data set in a child process and returns the report.

    Args:
        target_spec: TARGET: `train.py:make_loader`, or `package.module:attribute`.
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
    check_spec(target_spec)
    if options.contract is not None:
        Contract.load(options.contract)  # a misspelt key should not wait for the data
    chosen = tuple(rules) if rules is not None else _catalogue(options)
    created = dt.datetime.now(dt.UTC).astimezone().isoformat(timespec="seconds")
    with Lab(target_spec, budget=Budget(options.budget_s), per_sample_s=options.per_sample_s) as lab:
        gathered = gather(lab, options.wishes(kind for rule in chosen for kind in rule.needs), progress or _say_nothing)
    findings, skipped, cleared = _judge(chosen, gathered)
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
        verdict=_verdict(findings, cleared, gathered),
    )


def _catalogue(options: Options) -> tuple[Rule, ...]:
    from headrace.doctor.catalogue import rules

    return rules(options.select, options.ignore)


def _say_nothing(_: str) -> None:
    """Nobody listens."""


def _judge(rules: Iterable[Rule], gathered: Gathering) -> tuple[list[FindingRow], list[SkippedRow], list[str]]:
    """Lets each rule judge. One that lacks evidence, or that fails itself, is a row of its own and not the end."""
    findings: list[FindingRow] = []
    skipped: list[SkippedRow] = []
    cleared: list[str] = []
    for rule in rules:
        lacking = [kind for kind in rule.needs if kind not in gathered.evidence]
        if lacking:
            reasons = dict.fromkeys(gathered.missing.get(kind, f"no {kind.__name__}") for kind in lacking)
            skipped.append(SkippedRow(code=rule.code, name=rule.name, reason="; ".join(reasons)))
            continue
        try:
            found = [_row(rule, finding) for finding in rule.judge(*(gathered.evidence[kind] for kind in rule.needs))]
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"  # noqa: PTH119 - a text
            skipped.append(SkippedRow(code=rule.code, name=rule.name, reason=reason, crashed=True))
            continue
        findings += found
        if not found:
            cleared.append(rule.code)
    findings.sort(key=lambda row: (_SEVERITIES.index(row.severity), row.code))
    return findings, sorted(skipped, key=lambda row: row.code), sorted(cleared)


def _row(rule: Rule, finding: Finding) -> FindingRow:
    fix = finding.fix or rule.fix
    return FindingRow(
        code=rule.code,
        name=rule.name,
        stage=finding.stage,
        severity=finding.severity,
        basis=finding.basis,
        confidence=finding.confidence,
        message=finding.message,
        sample_ids=list(finding.sample_ids),
        where=finding.where,
        evidence=_plain(finding.evidence),
        fix=ChosenFix(text=fix.text, safety=fix.safety, snippet=fix.snippet),
    )


def _plain(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence as JSON values; what JSON does not know becomes its text."""
    plain: dict[str, Any] = msgspec.to_builtins(dict(evidence), enc_hook=str, str_keys=True)
    return plain


def _describe_target(spec: str, gathered: Gathering) -> dict[str, Any]:
    reads = gathered.evidence.get(SampleReads)
    examined = len(reads.reads) if isinstance(reads, SampleReads) else None
    described: dict[str, Any] = {"spec": spec}
    if gathered.introduction is not None:
        facts = gathered.introduction.facts
        described |= {
            "kind": facts.kind,
            "dataset": gathered.introduction.dataset_kind,
            "num_samples": facts.num_samples,
            "batch_size": facts.batch_size,
            "num_workers": facts.num_workers,
            "collate": gathered.introduction.collate,
        }
    return described | {"examined": examined}


def _verdict(
    findings: Sequence[FindingRow], cleared: Sequence[str], gathered: Gathering
) -> Literal["clean", "findings", "inconclusive"]:
    """`inconclusive` if no finding means nothing: hardly anything could be looked at, or no rule could judge."""
    if findings:
        return "findings"
    reads = gathered.evidence.get(SampleReads)
    if isinstance(reads, SampleReads):
        is_enough = len(reads.ok) >= min(FEWEST_READABLE, reads.num_samples) and len(reads.ok) > 0
    else:
        is_enough = WorkerStreams in gathered.evidence
    return "clean" if is_enough and cleared else "inconclusive"
