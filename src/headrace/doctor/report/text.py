"""The report as text for a terminal or a log: verdict first, then one block per finding, then what else was looked at.

Plain ASCII apart from the user's own names. Lines wrap at `width`; only paths and code may be longer, because a broken
path cannot be clicked and broken code cannot be pasted.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.doctor.report.model import FindingRow, Report, SkippedRow
from headrace.doctor.wording import count, listing

__all__ = ["render"]

LETTERS = {"error": "E", "warning": "W", "info": "I"}
COLOURS = {"error": "1;31", "warning": "1;33", "info": "1;36", "clean": "1;32", "label": "2"}
"""ANSI: bold red, yellow, cyan, green; dim."""

LABEL_COLUMNS = 9
"""Columns of `  where: `, the same as in error messages."""
CODE_INDENT = " " * LABEL_COLUMNS
STACK_LINES = 6
"""Lines of a stack that are shown; the JSON report has all of it."""
CLEAN_LINES = 6
"""A healthy loader gets no more lines than this: blank ones go first, then the reasons of what was skipped."""


def render(report: Report, *, width: int = 80, color: bool = False) -> str:
    """Returns the whole report as text that ends with a line break.

    Args:
        report: What to show.
        width: Columns to wrap at.
        color: True to mark severities with ANSI colours.
    """
    page = _Page(width, color)
    lines = [*page.verdict(report), *page.header(report.target)]
    for finding in report.findings:
        lines += ["", *page.finding(finding)]
    rest = [*page.runs(report), *page.ending(report)]
    room = CLEAN_LINES - len(lines) - len(rest) if report.verdict == "clean" else None
    lines += ["", *page.checks(report, room=room), *rest]
    if not report.findings and len(lines) > CLEAN_LINES:
        lines = [line for line in lines if line]
    return "\n".join(lines) + "\n"


class _Page:
    """Lays lines out at one width, with colour or without."""

    def __init__(self, width: int, color: bool) -> None:
        self.width = width
        self.color = color

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.color else text

    def wrap(self, text: str, *, first: str = "", indent: str | None = None, columns: int | None = None) -> list[str]:
        """Wraps one paragraph. `first` leads the first line and takes `columns` of it, colour codes not counted."""
        columns = len(first) if columns is None else columns
        margin = " " * columns if indent is None else indent
        wrapped = textwrap.wrap(
            " ".join(text.split()),
            self.width,
            initial_indent=" " * columns,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [first + line[columns:] if number == 0 else line for number, line in enumerate(wrapped)]

    def verdict(self, report: Report) -> list[str]:
        """One sentence."""
        colour = next(
            (finding.severity for finding in report.findings), "clean" if report.verdict == "clean" else "warning"
        )
        return self.wrap(_verdict(report), first=self.paint("VERDICT", colour) + "  ", columns=len("VERDICT  "))

    def header(self, target: Mapping[str, Any]) -> list[str]:
        """What was examined, in one line."""
        parts = [
            str(target.get("kind") or "").rpartition(".")[2],
            _counted(target.get("num_samples"), "sample"),
            f"batch size {target['batch_size']:,}" if target.get("batch_size") is not None else None,
            _counted(target.get("num_workers"), "worker"),
            f"{target['examined']:,} examined" if target.get("examined") is not None else None,
        ]
        return self.wrap(" | ".join(part for part in parts if part), indent="  ")

    def finding(self, row: FindingRow) -> list[str]:
        """One block: what, where, what was seen, what to do."""
        sure = "" if row.confidence >= 1 else f", {row.confidence:.0%} sure"
        stage = f"  (stage {row.stage}{sure})" if row.stage else ""
        lines = [f"{self.paint(f'{LETTERS[row.severity]} {row.code}', row.severity)} {row.name}{stage}"]
        lines += self.wrap(row.message, first="  ")
        for label, text in (
            ("ids", listing(row.sample_ids) if len(row.sample_ids) > 1 else ""),
            ("where", row.where or ""),
            ("seen", _evidence(row)),
        ):
            lines += self.labelled(label, text)
        if stack := row.evidence.get("stack"):
            lines += self.labelled("stack", "the lines nearest to the fault")
            lines += [f"{CODE_INDENT}{line}" for line in _excerpt(str(stack))]
        lines += self.labelled("do", row.fix.text)
        lines += [f"{CODE_INDENT}{line}".rstrip() for line in (row.fix.snippet or "").splitlines()]
        return lines + self.labelled("cost", row.fix.safety)

    def labelled(self, label: str, text: str) -> list[str]:
        """A line as in error messages, `  where: data/7.png`; nothing if there is no text."""
        if not text:
            return []
        name = f"{label}:"
        first = f"  {self.paint(name, 'label')}".ljust(LABEL_COLUMNS + (len(self.paint(name, "label")) - len(name)))
        return self.wrap(text, first=first, columns=LABEL_COLUMNS)

    def checks(self, report: Report, *, room: int | None) -> list[str]:
        """How many rules found nothing, and which could not judge, with the reason if there is room for it.

        Args:
            report: What to show.
            room: Lines to take if possible, and in few words. None: a line for each reason.
        """
        skipped = [row for row in report.skipped if not row.crashed]
        passed = f"{count(len(report.cleared), 'check')} passed"
        crashed = [
            line
            for row in report.skipped
            if row.crashed
            for line in self.wrap(f"{row.code} {row.name} failed itself, a fault of headrace: {row.reason}", first="! ")
        ]
        if not skipped:
            return [f"{passed}.", *crashed]
        summary = f"{passed}, {len(skipped)} skipped"
        if room is not None:
            codes = ", ".join(row.code for row in skipped)
            for text in (
                f"{summary}: {'; '.join(_by_reason(skipped))}.",
                f"{summary}: {codes} (reasons: --format json).",
                f"{summary} (--format json).",
            ):
                told = self.wrap(text)
                if len(told) <= min(room, 2):
                    break
            return [*told, *crashed]
        return [
            f"{summary}:",
            *(line for text in _by_reason(skipped) for line in self.wrap(text, first="  ")),
            *crashed,
        ]

    def runs(self, report: Report) -> list[str]:
        """The experiments that did not come to their end."""
        ended = [run for run in report.runs if run.outcome != "done"]
        return [
            line
            for run in ended
            for line in self.wrap(
                f"experiment {run.name!r} ended early ({run.outcome} after {run.wall_s:.1f} s)"
                + (f": {run.detail}" if run.detail else ""),
                first="! ",
            )
        ]

    def ending(self, report: Report) -> list[str]:
        """The next step."""
        if report.findings:
            return ["", f"Next: headrace explain {report.findings[0].code}"]
        examined, total = report.target.get("examined"), report.target.get("num_samples")
        if report.verdict == "inconclusive":
            return self.wrap("Remove what stopped it and run it again.")
        if examined is not None and total is None:
            return self.wrap(f"Nothing to fix among the {examined:,} samples that were examined.")
        if examined is None or total is None or examined >= total:
            return self.wrap("Nothing to fix: everything was examined.")
        return self.wrap(
            f"Nothing to fix among the {examined:,} samples that were examined; --full tries all {total:,}."
        )


def _verdict(report: Report) -> str:
    spec = report.target.get("spec") or "this loader"
    if not report.findings:
        if report.verdict == "inconclusive":
            return f"{spec} is undecided: nothing was found, but too little could be examined to call it clean."
        examined, total = report.target.get("examined"), report.target.get("num_samples")
        if examined is not None and total is None:
            return f"{spec}: no fault was found in the {examined:,} samples that were examined."
        if examined is not None and total is not None and examined < total:
            return f"{spec}: no fault was found in the {examined:,} of {total:,} samples that were examined."
        return f"{spec} is clean: no fault was found."
    severities = [finding.severity for finding in report.findings]
    words = {"error": "error", "warning": "warning", "info": "remark"}
    counts = [count(severities.count(kind), word) for kind, word in words.items() if kind in severities]
    has = " and ".join(counts) if len(counts) < 3 else f"{counts[0]}, {counts[1]} and {counts[2]}"
    ids = {sample_id for finding in report.findings for sample_id in finding.sample_ids}
    named = {0: "", 1: f", in sample {next(iter(ids), None)}"}.get(len(ids), f", in {len(ids):,} named samples")
    first = report.findings[0]
    return f"{spec} has {has}{named}; begin with {first.code} {first.name}."


def _counted(number: int | None, noun: str) -> str | None:
    return None if number is None else count(number, noun)


def _by_reason(skipped: Iterable[SkippedRow]) -> Iterator[str]:
    """Yields `HR307, HR601: the reason`, each reason once."""
    reasons: dict[str, list[str]] = {}
    for row in skipped:
        reasons.setdefault(row.reason, []).append(row.code)
    for reason, codes in reasons.items():
        yield f"{', '.join(codes)}: {reason.rstrip('.')}"


def _evidence(row: FindingRow) -> str:
    """The numbers and texts behind a finding, without those that the message already says."""
    facts = [
        _fact(name, value)
        for name, value in row.evidence.items()
        if name != "stack" and value is not None and value not in ([], {})
    ]
    return "; ".join(f"{name} {text}" for name, text in facts if text not in row.message)


def _fact(name: str, value: Any) -> tuple[str, str]:
    """`size_bytes`, 130 -> `size`, `130 bytes`: the unit that ends a name goes behind the number."""
    for suffix, unit in (("_bytes", " bytes"), ("_s", " s")):
        if name.endswith(suffix) and isinstance(value, (int, float)):
            return name.removesuffix(suffix).replace("_", " "), _value(value) + unit
    return name.replace("_", " "), _value(value)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_value(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return listing([_value(part) for part in value])
    return str(value)


def _excerpt(stack: str) -> list[str]:
    """The lines of a stack nearest to the fault: tracebacks end there, dumps of `faulthandler` begin there."""
    lines = stack.rstrip().splitlines()
    return lines[:STACK_LINES] if "most recent call first" in stack else lines[-STACK_LINES:]
