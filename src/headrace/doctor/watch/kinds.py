"""Which rules `watch` can judge: those that ask for what is only seen in a running script."""

from __future__ import annotations

from headrace.doctor.evidence import Evidence
from headrace.doctor.rule import Rule

__all__ = ["is_watched"]

TOPICS = ("passes", "stages", "training")
"""Modules of evidence that `watch` fills."""


def is_watched(rule: Rule) -> bool:
    """True for a rule that judges a running script; `diagnose` cannot gather what it asks for."""
    return any(_is_seen(kind) for kind in rule.needs)


def _is_seen(kind: type[Evidence]) -> bool:
    return kind.__module__.rpartition(".")[2] in TOPICS
