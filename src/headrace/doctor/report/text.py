"""The report as text for a terminal or a log: verdict first, then one block per finding, then what else was looked at.

Plain ASCII apart from the user's own names. Lines wrap at `width`; only paths and code may be longer, because a broken
path cannot be clicked and broken code cannot be pasted.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.doctor.report.model import FindingRow, Report, SkippedRow
from headrace.doctor.report.values import facts_of
from headrace.doctor.report.visible import visible
from headrace.doctor.wording.samples import count, listing

__all__ = ["finding_text", "render", "verdict_sentence"]

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
MOST_REASONS = 4
"""Reasons of skipped checks that are told, those of most checks first: what was found must stay in sight."""
MOST_CODES = 5
"""Codes that are named beside one reason."""


def render(report: Report, *, width: int = 80, color: bool = False) -> str:
    """Returns the whole report as text that ends with a line break.

    Args:
        report: What to show.
        width: Columns to wrap at.
        color: True to mark severities with ANSI colours.
    """
    report = visible(report)
    page = _Page(width, color)
    lines = [*page.verdict(report), *page.header(report.target)]
    for finding in report.findings:
        lines += ["", *page.finding(finding)]
    rest = [*page.set_apart(report), *page.runs(report), *page.ending(report)]
    room = CLEAN_LINES - len(lines) - len(rest) if report.verdict == "clean" else None
    lines += ["", *page.checks(report, room=room), *rest]
    if not report.findings and len(lines) > CLEAN_LINES:
        lines = [line for line in lines if line]
    return "\n".join(lines) + "\n"


def finding_text(row: FindingRow) -> str:
    """Returns one finding as the report shows it, at 80 columns and without colour."""
    return "\n".join(_Page(80, color=False).finding(row))


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
        return self.wrap(verdict_sentence(report), first=self.paint("VERDICT", colour) + "  ", columns=len("VERDICT  "))

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
        lines += self.wrap(f"[{row.split}] {row.message}" if row.split else row.message, first="  ")
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
            *(line for text in _main_reasons(skipped) for line in self.wrap(text, first="  ")),
            *crashed,
        ]

    def set_apart(self, report: Report) -> list[str]:
        """What does not count: known and ignored findings, what vanished, and notes; one line each where possible."""
        lines = [f"{count(len(report.known), 'known finding')} (in the baseline)."] if report.known else []
        if report.vanished:
            gone = ", ".join(dict.fromkeys(row.code for row in report.vanished))
            number = count(len(report.vanished), "finding")
            lines.append(f"{number} of the baseline no longer seen: {gone}; --write-baseline brings it up to date.")
        lines += [f"ignored: {one.finding.code} at {one.at}: {one.reason}" for one in report.ignored]
        lines += [f"note: {note}" for note in report.notes]
        return [line for text in lines for line in self.wrap(text, indent="  ")]

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
            longer = "Nothing to fix so far; a longer run would also be judged on its speed."
            if _lacks_speed_alone(report):
                return self.wrap(longer)
            reads = next((run for run in report.runs if run.name == "reads" and ";" in run.detail), None)
            if reads is not None and all(run.outcome == "done" for run in report.runs):
                spec = report.target.get("spec")
                told = f"Samples that were tried: {reads.detail}. headrace diagnose {spec} --select HR1 names them."
                return self.wrap(told)
            return self.wrap("Remove what stopped it and run it again.")
        if report.ignored or report.known:
            return []
        if examined is not None and total is None:
            return self.wrap(f"Nothing to fix among the {examined:,} samples that were examined.")
        if examined is None:
            return self.wrap("Nothing to fix.")
        if total is None or examined >= total:
            return self.wrap("Nothing to fix: everything was examined.")
        return self.wrap(
            f"Nothing to fix among the {examined:,} samples that were examined; --full tries all {total:,}."
        )


def verdict_sentence(report: Report) -> str:
    """Returns the verdict as one sentence."""
    spec = report.target.get("spec") or "this loader"
    if not report.findings:
        if _lacks_speed_alone(report):
            return f"{spec}: no fault was found, but its speed was not judged."
        if report.verdict == "inconclusive":
            return f"{spec} is undecided: nothing was found, but too little could be examined to call it clean."
        if apart := _set_apart(report):
            return f"{spec} has no finding that counts; {apart}."
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
    apart = f" ({_set_apart(report)})" if _set_apart(report) else ""
    return f"{spec} has {has}{named}; begin with {first.code} {first.name}{apart}."


def _lacks_speed_alone(report: Report) -> bool:
    """True for a script that was watched to its end, and was only too short to say whether it waits."""
    return report.verdict == "inconclusive" and bool(report.cleared) and "watch" in report.target


def _set_apart(report: Report) -> str:
    """`1 is ignored and 2 are known`; empty if nothing is."""
    numbers = ((len(report.ignored), "ignored"), (len(report.known), "known"))
    return " and ".join(f"{number:,} {'is' if number == 1 else 'are'} {word}" for number, word in numbers if number)


def _counted(number: int | None, noun: str) -> str | None:
    return None if number is None else count(number, noun)


def _by_reason(skipped: Iterable[SkippedRow]) -> Iterator[str]:
    """Yields `HR307, HR601: the reason`, each reason once."""
    reasons: dict[str, list[str]] = {}
    for row in skipped:
        reasons.setdefault(row.reason, []).append(row.code)
    for reason, codes in reasons.items():
        yield f"{', '.join(codes)}: {reason.rstrip('.')}"


def _main_reasons(skipped: Sequence[SkippedRow]) -> list[str]:
    """The reasons of most skipped checks, each with its first codes, and how many more there are."""
    reasons: dict[str, list[str]] = {}
    for row in skipped:
        reasons.setdefault(row.reason, []).append(row.code)
    main = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    told = [f"{listing(codes, MOST_CODES)}: {reason.rstrip('.')}" for reason, codes in main[:MOST_REASONS]]
    if left := main[MOST_REASONS:]:
        codes = sum(len(codes) for _, codes in left)
        told.append(f"and {count(codes, 'check')} for {count(len(left), 'other reason')} (--format json)")
    return told


def _evidence(row: FindingRow) -> str:
    """The numbers and texts behind a finding, without those that the message already says."""
    return "; ".join(f"{name} {text}" for name, text in facts_of(row) if text not in row.message)


def _excerpt(stack: str) -> list[str]:
    """The lines of a stack nearest to the fault: tracebacks end there, dumps of `faulthandler` begin there."""
    lines = stack.rstrip().splitlines()
    return lines[:STACK_LINES] if "most recent call first" in stack else lines[-STACK_LINES:]
