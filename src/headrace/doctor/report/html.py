"""The report as one self-contained HTML page, and as a short piece of HTML for notebooks.

No network, no script, nothing but this one file: it can be mailed, archived, opened from a disk or printed. Data may
hold anything, so every text is escaped, and a content policy forbids the page to run or fetch whatever slips in.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from headrace.doctor.report.model import FindingRow, Report
from headrace.doctor.report.plots import plot_runs, plot_stages
from headrace.doctor.report.templating import LONGEST, clip, render_template
from headrace.doctor.report.text import verdict_sentence
from headrace.doctor.report.thumbnail import Thumbnail
from headrace.doctor.report.values import facts_of
from headrace.doctor.report.visible import visible, visible_text
from headrace.doctor.wording.samples import count
from headrace.errors import MissingExtra, SampleId

__all__ = ["render_page", "render_short"]

MOST_BYTES = 1_300_000
"""Bytes of all findings together, pictures included, so that the page stays below 2 MB and can be mailed."""
MOST_ROWS = 150
"""Rows of a table, and findings of the short form: more is read by nobody."""
MOST_IDS = 48
WORDS = {"error": "error", "warning": "warning", "info": "remark"}


def render_page(report: Report, thumbnails: Sequence[Thumbnail] = ()) -> str:
    """Returns the whole page, which ends with a line break.

    Args:
        report: What to show.
        thumbnails: Pictures of flagged samples. They are data: give them only where the user asked for them.
    """
    shown = visible(report)
    findings = _findings(shown, report, thumbnails)
    plots, no_plots = _plots(shown)
    values = {
        **_common(shown),
        "findings": findings,
        "num_left_out": len(shown.findings) - len(findings),
        "most": MOST_ROWS,
        "facts": _target_facts(shown),
        "reasons": _reasons(shown),
        "plots": plots,
        "no_plots": no_plots,
        "has_thumbnails": bool(thumbnails),
    }
    return _render("page.html.j2", values)


def render_short(report: Report) -> str:
    """Returns verdict and findings as a piece of HTML whose style touches nothing around it."""
    shown = visible(report)
    values = {**_common(shown), "rows": shown.findings[:MOST_ROWS]}
    return _render("short.html.j2", values)


def _render(name: str, values: dict[str, Any]) -> str:
    return render_template(name, values)


def _common(report: Report) -> dict[str, Any]:
    severities = [row.severity for row in report.findings]
    worst = next((kind for kind in WORDS if kind in severities), report.verdict)
    return {
        "report": report,
        "verdict": verdict_sentence(report),
        "worst": worst,
        "word": {"error": "Faults found", "warning": "Warnings", "info": "Remarks", "clean": "Clean"}.get(
            worst, "Undecided"
        ),
        "counts": [(kind, count(severities.count(kind), word)) for kind, word in WORDS.items() if kind in severities],
        "words": WORDS,
    }


def _findings(shown: Report, report: Report, thumbnails: Sequence[Thumbnail]) -> list[dict[str, Any]]:
    """Each finding with its HTML, as many as there is room for; the picture of a sample stands where it is first named.

    Pictures are found by the ids as they are, not as they are shown.
    """
    from markupsafe import Markup

    pictures: dict[SampleId, list[Thumbnail]] = {}
    for picture in thumbnails:
        pictures.setdefault(picture.sample_id, []).append(picture)
    found: list[dict[str, Any]] = []
    room = MOST_BYTES
    for row, original in zip(shown.findings, report.findings, strict=True):
        mine = [one for sample_id in dict.fromkeys(original.sample_ids) for one in pictures.pop(sample_id, ())]
        values = {"number": len(found) + 1, "row": row, "words": WORDS}
        html = _render("finding.html.j2", {**values, "one": _finding(row, mine)})
        if mine and len(html.encode()) > room:
            html = _render("finding.html.j2", {**values, "one": _finding(row, ())})
        room -= len(html.encode())
        if room < 0:
            break
        found.append({"row": row, "html": Markup(html)})  # noqa: S704 - made by a template that escapes
    return found


def _finding(row: FindingRow, pictures: Sequence[Thumbnail]) -> dict[str, Any]:
    """One finding as the page shows it."""
    return {
        "facts": [(clip(name, 200), clip(text)) for name, text in facts_of(row)],
        "stack": clip(str(row.evidence.get("stack") or ""), 3 * LONGEST),
        "ids": row.sample_ids[:MOST_IDS],
        "num_more_ids": max(0, len(row.sample_ids) - MOST_IDS),
        "pictures": [
            {
                "caption": visible_text(f"{picture.sample_id} {f'[{picture.field}]' if picture.field else ''}".strip()),
                "note": visible_text(picture.note),
                "data": None if picture.png is None else base64.b64encode(picture.png).decode("ascii"),
            }
            for picture in pictures
        ],
    }


def _target_facts(report: Report) -> list[tuple[str, str]]:
    """What was examined, name by name, in the order of the report."""
    return [
        (name.replace("num_", "").replace("_", " "), _target_value(value))
        for name, value in report.target.items()
        if value not in (None, []) and name != "spec"
    ]


def _target_value(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return clip(", ".join(map(str, value)) if isinstance(value, list) else str(value), 200)


def _reasons(report: Report) -> list[tuple[str, list[str], bool]]:
    """(reason, codes, whether the rules failed themselves) of what was skipped, failures first."""
    found: dict[tuple[bool, str], list[str]] = {}
    for row in sorted(report.skipped, key=lambda row: not row.crashed):
        found.setdefault((row.crashed, row.reason), []).append(f"{row.code} {row.name}")
    return [(clip(reason), codes, crashed) for (crashed, reason), codes in found.items()]


def _plots(report: Report) -> tuple[list[tuple[str, str]], str]:
    """(title, SVG) of each plot, and why there are none."""
    titled = (("Where the time of a sample goes", plot_stages), ("What each experiment took", plot_runs))
    try:
        drawn = [(title, plot(report)) for title, plot in titled]
    except MissingExtra as error:
        return [], f"{error.what}: {'; '.join(error.do)}. The tables below hold the same numbers."
    return [(title, svg) for title, svg in drawn if svg is not None], ""
