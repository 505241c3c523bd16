"""What the doctor said of the loader that a run trains with, in a few plain values for the history."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.errors import ConfigurationError

__all__ = ["SCHEMA", "verdict_of"]

SCHEMA = 1
"""Newest schema of reports whose meaning is known here. The doctor's own types stand above the loop, so these are the few fields
that are read of them."""

WORDS = {"error": "error", "warning": "warning", "info": "remark"}


class _Row(msgspec.Struct):
    code: str
    name: str
    severity: str


class _Report(msgspec.Struct):
    schema: int
    tool: str
    created: str
    verdict: str
    findings: list[_Row]
    skipped: list[Any]
    cleared: list[str]
    target: dict[str, Any] = {}
    known: list[Any] = []
    ignored: list[Any] = []


def verdict_of(diagnosis: Any) -> dict[str, Any]:
    """Returns verdict, headline, counts and codes of a diagnosis as plain values.

    Args:
        diagnosis: What `headrace.diagnose` returned, or the path of a report that `headrace diagnose --json FILE` wrote.

    Raises:
        ConfigurationError: it is neither, or its schema is newer than this version of headrace.
    """
    is_path = isinstance(diagnosis, str | os.PathLike)
    report = _read(pathlib.Path(diagnosis)) if is_path else _taken(diagnosis)
    if report.schema > SCHEMA:
        raise ConfigurationError(
            f"the diagnosis has schema {report.schema}, and this headrace reads up to {SCHEMA}",
            do="pip install --upgrade headrace",
        )
    severities = [row.severity for row in report.findings]
    return {
        "headline": _headline(report, severities),
        "verdict": report.verdict,
        "counts": {severity: severities.count(severity) for severity in WORDS},
        "rules": list(dict.fromkeys(row.code for row in report.findings)),
        "passed": len(report.cleared),
        "skipped": len(report.skipped),
        "accepted": len(report.known) + len(report.ignored),
        "tool": report.tool,
        "created": report.created,
        "report": str(pathlib.Path(diagnosis).resolve()) if is_path else None,
    }


def _read(path: pathlib.Path) -> _Report:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Report)
    except OSError as error:
        raise ConfigurationError(
            f"diagnosis={str(path)!r} cannot be read: {error.strerror or error}",
            do=f"headrace diagnose train.py:make_loader --json {path}",
        ) from error
    except msgspec.MsgspecError as error:
        raise ConfigurationError(
            f"diagnosis={str(path)!r} is no report of headrace diagnose",
            why=str(error),
            do=f"headrace diagnose train.py:make_loader --json {path}",
        ) from error


def _taken(report: Any) -> _Report:
    try:
        return msgspec.convert(report, _Report, from_attributes=True)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(
            f"diagnosis={type(report).__name__} is no report",
            why=str(error),
            do=("diagnosis=hr.diagnose(loader)", 'diagnosis="report.json"    # of headrace diagnose --json'),
        ) from error


def _headline(report: _Report, severities: Sequence[str]) -> str:
    """One line: `train.py:make_loader: 2 errors and 1 remark; begin with HR206 constant-worker-seed`."""
    spec = report.target.get("spec")
    lead = f"{spec}: " if isinstance(spec, str) and spec else ""
    if not report.findings:
        accepted = f", {len(report.known) + len(report.ignored)} accepted" if report.known or report.ignored else ""
        undecided = report.verdict == "inconclusive"
        return f"{lead}{'undecided: too little could be examined' if undecided else f'no fault found{accepted}'}"
    counts = [(severities.count(severity), word) for severity, word in WORDS.items() if severity in severities]
    told = [f"{number} {word}{'s' if number > 1 else ''}" for number, word in counts]
    listed = " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
    first = report.findings[0]
    return f"{lead}{listed}; begin with {first.code} {first.name}"
