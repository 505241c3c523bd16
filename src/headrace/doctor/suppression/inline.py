"""Sets findings apart that a comment in the user's source takes for meant, each with its reason.

A comment speaks for the statement on, in or directly below which it stands: a finding that points to one of its lines,
or any finding of the rule if that statement is the `def` or `class` line of the TARGET or of the data set.
Without a reason it is not honoured. What is ignored is listed, and an ignore that matches nothing is told.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

import msgspec

from headrace.doctor import catalogue
from headrace.doctor.report.model import FindingRow, IgnoredRow, Report
from headrace.doctor.report.places import source_line, target_file
from headrace.doctor.suppression.comments import Comment, read_comments
from headrace.doctor.suppression.definitions import Definition, definitions
from headrace.doctor.suppression.verdict import with_findings
from headrace.errors import nearest

__all__ = ["apply_comments"]


def apply_comments(report: Report) -> Report:
    """Returns the report with the ignored findings set apart; reads source files, executes nothing.

    Applied twice it is as applied once.
    """
    defined = definitions(report.target)
    comments = [comment for file in _files(report, defined) for comment in read_comments(file)]
    if not comments:
        return report
    honoured = [comment for comment in comments if comment.reason and comment.codes]
    left: list[FindingRow] = []
    ignored: list[IgnoredRow] = []
    used = {(one.at, one.finding.code) for one in report.ignored}
    for finding in report.findings:
        matching = [comment for comment in honoured if _speaks_for(comment, finding, defined)]
        used |= {(comment.at, finding.code) for comment in matching}
        if matching:
            ignored.append(IgnoredRow(finding=finding, reason=matching[0].reason, at=matching[0].at))
        else:
            left.append(finding)
    notes = list(dict.fromkeys([*report.notes, *_faults(comments), *_idle(honoured, used, report)]))
    if not ignored:
        return msgspec.structs.replace(report, notes=notes)
    return with_findings(report, left, ignored=[*report.ignored, *ignored], notes=notes)


def _files(report: Report, defined: Iterable[Definition]) -> list[str]:
    """Source files that a comment about these findings may stand in, each once."""
    lines = [source_line(finding.where) for finding in report.findings]
    named = [target_file(report.target), *(one.file for one in defined), *(line.file for line in lines if line)]
    return list({_same(file): file for file in reversed(named) if file and file.endswith(".py")}.values())[::-1]


def _same(file: str) -> pathlib.Path:
    """The file itself, whichever way it is named; a name that no file can have is left as it is."""
    try:
        return pathlib.Path(file).resolve()
    except (OSError, ValueError):
        return pathlib.Path(file)


def _speaks_for(comment: Comment, finding: FindingRow, defined: Iterable[Definition]) -> bool:
    if finding.code not in comment.codes:
        return False
    line = source_line(finding.where)
    if line is not None and line.line in comment.covers and _same(line.file) == _same(comment.file):
        return True
    return any(
        _same(one.file) == _same(comment.file) and not set(one.header).isdisjoint(comment.covers) for one in defined
    )


def _faults(comments: Iterable[Comment]) -> Iterable[str]:
    """What is wrong with comments that cannot be honoured."""
    known = {rule.code for rule in catalogue.rules()}
    for comment in comments:
        if not comment.codes:
            yield f"{comment.at}: the ignore names no rule, so it is not honoured: write  # headrace: ignore[HR...] why"
        elif not comment.reason:
            codes = ", ".join(comment.codes)
            yield f"{comment.at}: the ignore has no reason, so it is not honoured: write  # headrace: ignore[{codes}] why"
        for code in comment.codes:
            if code not in known:
                yield f"{comment.at}: the ignore names {code}, which is no rule{nearest(code, known)}"


def _idle(honoured: Iterable[Comment], used: set[tuple[str, str]], report: Report) -> Iterable[str]:
    """Ignores that matched no finding although their rule could judge; one line for all."""
    judged = {*report.cleared, *(finding.code for finding in report.findings)}
    idle = [
        f"{code} at {comment.at}"
        for comment in honoured
        for code in comment.codes
        if code in judged and (comment.at, code) not in used
    ]
    if idle:
        noun, verb = ("ignore", "matches") if len(idle) == 1 else ("ignores", "match")
        yield f"{len(idle)} {noun} {verb} nothing in this run: {', '.join(idle)}"
