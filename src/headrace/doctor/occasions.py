"""Where each rule can judge: on a loader that is examined, on a script that runs, on runs that are resumed.

It follows from the evidence that a rule asks for; no rule says it itself.
"""

from __future__ import annotations

from headrace.doctor.evidence import Evidence
from headrace.doctor.rule import Rule

__all__ = ["is_diagnosed", "is_watched"]

ONLY_WATCHED = ("passes", "stages", "training")
"""Files of evidence that only a running script can fill."""
ONLY_RESUMED = ("resume",)
"""The same of `headrace diagnose --resume`."""
BOTH = ("SplitOverlap", "Orders", "LastBatch")
"""Kinds of evidence that an examination gathers and that a running script shows as well."""


def is_watched(rule: Rule) -> bool:
    """True for a rule that can judge a running script."""
    return all(_topic(kind) in ONLY_WATCHED or kind.__name__ in BOTH for kind in rule.needs)


def is_diagnosed(rule: Rule) -> bool:
    """True for a rule that can judge a loader by itself."""
    return not any(_topic(kind) in ONLY_WATCHED + ONLY_RESUMED for kind in rule.needs)


def _topic(kind: type[Evidence]) -> str:
    return kind.__module__.rpartition(".")[2]
