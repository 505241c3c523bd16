"""The Report: one analysed set of facts that every rendering shows. Its JSON schema is generated from these types.

null = not measured, 0 = measured zero. Fields are only ever added; a change of meaning raises `SCHEMA_VERSION`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headrace.doctor.rule import Basis, Severity
from headrace.errors import SampleId

__all__ = [
    "SCHEMA_VERSION",
    "ChosenFix",
    "Environment",
    "EquivalenceRow",
    "FindingRow",
    "Report",
    "RunRow",
    "SkippedRow",
    "StageRow",
]

SCHEMA_VERSION = 1


class ChosenFix(msgspec.Struct, frozen=True, kw_only=True):
    """How to mend a finding."""

    text: str
    safety: str
    snippet: str | None = None


class FindingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fault."""

    code: str
    name: str
    stage: str
    severity: Severity
    basis: Basis
    confidence: float
    message: str
    sample_ids: list[SampleId]
    where: str | None
    evidence: dict[str, Any]
    fix: ChosenFix
    split: str | None = None
    """Name of the loader that has it, where TARGET has several: train, val, ...; null: the only one."""


class SkippedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that could not judge, and why; `crashed` = the rule itself failed, which is a fault of headrace."""

    code: str
    name: str
    reason: str
    crashed: bool = False


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment that was run."""

    name: str
    outcome: Literal["done", "failed", "stuck", "crashed", "over-budget"]
    wall_s: float
    detail: str = ""


class StageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one stage over the samples that were examined."""

    name: str
    num_samples: int
    wall_s: float | None


class EquivalenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of two ways to load (none in this version)."""

    a: str
    b: str
    level: str
    result: str
    first_difference: str | None


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Where the report was made."""

    python: str
    torch: str | None
    numpy: str
    headrace: str
    platform: str
    usable_cores: int
    """Cores that this process may use: affinity and quota, not what the machine has."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one command found out."""

    schema: int = SCHEMA_VERSION
    tool: str
    """`headrace` and its version."""
    created: str
    """ISO 8601 with offset."""
    command: str
    """What was typed."""
    environment: Environment
    target: dict[str, Any]
    """What was examined: spec, kind, number of samples, batch size, workers, samples examined."""
    findings: list[FindingRow]
    """Most severe first, then by code."""
    runs: list[RunRow]
    stages: list[StageRow]
    equivalence: list[EquivalenceRow] | None = None
    choice: dict[str, Any] | None = None
    skipped: list[SkippedRow]
    cleared: list[str]
    """Codes of the rules that judged and found nothing."""
    verdict: Literal["clean", "findings", "inconclusive"]
    """inconclusive: no finding, but so little could be examined that silence proves nothing; the reasons are in `skipped`."""

    def text(self, *, width: int = 80) -> str:
        """Returns the report as `headrace diagnose` prints it, wrapped at `width` columns."""
        from headrace.doctor.report.text import render  # a rendering of this model, which knows no renderings else

        return render(self, width=width)

    @property
    def exit_status(self) -> int:
        """0 clean, 1 findings of severity error or warning, 3 inconclusive."""
        if any(finding.severity != "info" for finding in self.findings):
            return 1
        return 3 if self.verdict == "inconclusive" else 0
