"""The report as workflow commands of GitHub Actions: each finding becomes an annotation beside the line it is about.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions: one command a line; values escape what
would end them. GitHub shows ten annotations of each level for one step; the log has all of them.
"""

from __future__ import annotations

from headrace.doctor.report.model import FindingRow, Report
from headrace.doctor.report.places import place_of
from headrace.doctor.report.text import verdict_sentence
from headrace.doctor.report.visible import visible
from headrace.doctor.wording.samples import listing

__all__ = ["to_github"]

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def to_github(report: Report) -> str:
    """Returns one line for each finding that counts, and the verdict as a line of the log."""
    report = visible(report)
    lines = [_command(row, report) for row in report.findings]
    return "\n".join([*lines, f"VERDICT  {' '.join(verdict_sentence(report).split())}"]) + "\n"


def _command(row: FindingRow, report: Report) -> str:
    place = place_of(row, report)
    values = {"title": f"{row.code} {row.name}"}
    if place is not None:
        values = {"file": place.file} | ({} if place.line is None else {"line": str(place.line)}) | values
    split = f"[{row.split}] " if row.split else ""
    samples = f"\nsamples: {listing(row.sample_ids, 10)}" if row.sample_ids else ""
    text = f"{split}{row.message}{samples}\ndo: {row.fix.text}"
    told = ",".join(f"{name}={_escape_value(value)}" for name, value in values.items())
    return f"::{LEVELS[row.severity]} {told}::{_escape(text)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_value(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
