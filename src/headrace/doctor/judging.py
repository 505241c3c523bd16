"""Lets rules judge evidence, however it was gathered: the rows of a report."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.doctor.evidence import Evidence
from headrace.doctor.report.model import ChosenFix, FindingRow, SkippedRow
from headrace.doctor.rule import Finding, Rule

__all__ = ["SEVERITIES", "judge", "standing"]

SEVERITIES = ("error", "warning", "info")
"""The worst first."""


def standing(rules: Iterable[Rule], findings: Sequence[FindingRow]) -> list[FindingRow]:
    """Returns the findings without those that only matter beside others which are not there; see `Rule.beside`."""
    beside = {rule.code: rule.beside for rule in rules}
    return [row for row in findings if any(one.code.startswith(beside.get(row.code, "")) for one in findings)]


def judge(
    rules: Iterable[Rule],
    evidence: Mapping[type[Evidence], Evidence],
    missing: Mapping[type[Evidence], str],
    split: str | None = None,
) -> tuple[list[FindingRow], list[SkippedRow], list[str]]:
    """Lets each rule judge. One that lacks evidence, or that fails itself, is a row of its own and not the end.

    Args:
        rules: Who judges.
        evidence: What was gathered, by its kind.
        missing: Why a kind of evidence could not be gathered.
        split: Name of the loader, if there are several.

    Returns:
        Findings, the most severe first; rules that could not judge; codes of the rules that found nothing.
    """
    findings: list[FindingRow] = []
    skipped: list[SkippedRow] = []
    cleared: list[str] = []
    for rule in rules:
        lacking = [kind for kind in rule.needs if kind not in evidence]
        if lacking:
            reasons = dict.fromkeys(missing.get(kind, f"no {kind.__name__}") for kind in lacking)
            skipped.append(SkippedRow(code=rule.code, name=rule.name, reason="; ".join(reasons)))
            continue
        try:
            found = [_row(rule, finding, split) for finding in rule.judge(*(evidence[kind] for kind in rule.needs))]
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"  # noqa: PTH119 - a text
            skipped.append(SkippedRow(code=rule.code, name=rule.name, reason=reason, crashed=True))
            continue
        findings += found
        if not found:
            cleared.append(rule.code)
    findings.sort(key=lambda row: (SEVERITIES.index(row.severity), row.code))
    return findings, sorted(skipped, key=lambda row: row.code), sorted(cleared)


def _row(rule: Rule, finding: Finding, split: str | None) -> FindingRow:
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
        split=split,
        fix=ChosenFix(text=fix.text, safety=fix.safety, snippet=fix.snippet),
    )


def _plain(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence as JSON values; what JSON does not know becomes its text."""
    plain: dict[str, Any] = msgspec.to_builtins(dict(evidence), enc_hook=str, str_keys=True)
    return plain
