"""The shape of a rule, and what it says: Rule, Finding, Fix, Example.

ONE RULE = ONE SMALL FILE in `rules/`. A rule is a record with one pure function: same evidence, same verdict; no
clock, no device, no loader. Its page in the docs, its tests and its line in `headrace rules` are made from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from headrace.doctor.evidence import Evidence
from headrace.errors import SampleId

__all__ = ["Basis", "Example", "Finding", "Fix", "Rule", "Severity"]

Severity = Literal["error", "warning", "info"]
Basis = Literal["static", "observed", "experiment"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """How to mend it."""

    text: str
    """One or two sentences."""
    safety: str
    """What it may change or cost: e.g. `changes which samples are delivered`, `same data`."""
    snippet: str | None = None
    """Code to paste; None if there is no general one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one rule found: a fault named by sample, place and measure."""

    message: str
    """One sentence in the user's words, with the offending and the expected value."""
    severity: Severity = "error"
    basis: Basis = "observed"
    confidence: float = 1.0
    """0..1: how sure the rule is that this is a fault and not a habit; below 0.5 rules keep silent."""
    stage: str = ""
    """read, decode, transform, collate, ...; a plan's stage name where known."""
    sample_ids: tuple[SampleId, ...] = ()
    """Every sample concerned among those examined, in data set order."""
    where: str | None = None
    """Path, attribute, or `file:line`: the place to open in an editor."""
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Numbers and texts that prove it; JSON values only."""
    fix: Fix | None = None
    """A fix fitted to this case; None: the rule's general one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Made-up evidence with the verdict that it must get."""

    title: str
    """What it shows, in a few words."""
    evidence: tuple[Evidence, ...]
    """One record per entry of the rule's `needs`, in that order."""
    message: str | None = None
    """For a sick example: the exact message of the finding."""
    sample_ids: tuple[SampleId, ...] = ()
    """For a sick example: the samples that the finding names."""


class Rule:
    """Base of all rules. Subclasses are final and fill every field; there is nothing to override but `judge`."""

    code: ClassVar[str]
    """HRnnn; never reused."""
    name: ClassVar[str]
    """kebab-case; the trouble itself, reads well after "this loader has ..."."""
    since: ClassVar[str] = "0.1"
    status: ClassVar[Literal["preview", "stable", "deprecated", "removed"]] = "preview"
    summary: ClassVar[str]
    """One sentence: what is looked for."""
    rationale: ClassVar[str]
    """Why it hurts, how people meet it, when it is not a fault; paragraphs of Markdown."""
    experiment: ClassVar[str]
    """What is run to see it, and what that may disturb."""
    needs: ClassVar[tuple[type[Evidence], ...]]
    """Evidence that `judge` takes, in order; if one is missing the rule is skipped with the reason."""
    fix: ClassVar[Fix]
    references: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[str] = ""
    """What the codes begin with beside which alone a finding matters, unless the rule is asked for; empty: it always does."""
    """Public reports of the fault, as repository#number, or pages."""
    sick: ClassVar[tuple[Example, ...]]
    healthy: ClassVar[tuple[Example, ...]]

    def judge(self, *evidence: Any) -> list[Finding]:
        """Returns what is wrong; an empty list if nothing is. Pure."""
        raise NotImplementedError
