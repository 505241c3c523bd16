"""The report as one self-contained HTML page, and as a short piece of HTML for notebooks.

No network, no script, nothing but this one file: it can be mailed, archived, opened from a disk or printed. Data may
hold anything, so every text is escaped, and a content policy forbids the page to run or fetch whatever slips in.
"""

from __future__ import annotations

import base64
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

from headrace.doctor.report.links import rule_page
from headrace.doctor.report.model import FindingRow, Report
from headrace.doctor.report.plots import plot_runs, plot_stages
from headrace.doctor.report.text import verdict_sentence
from headrace.doctor.report.thumbnail import Thumbnail
from headrace.doctor.report.values import facts_of
from headrace.doctor.report.visible import visible
from headrace.doctor.wording import count
from headrace.errors import MissingExtra, SampleId

__all__ = ["render_page", "render_short"]

MOST_FINDINGS = 200
"""Findings that are shown whole: a page of more is read by nobody, and stays below 2 MB this way."""
MOST_IDS = 48
LONGEST = 2000
"""Characters of one text; the JSON report has all of them."""
WORDS = {"error": "error", "warning": "warning", "info": "remark"}


def render_page(report: Report, thumbnails: Sequence[Thumbnail] = ()) -> str:
    """Returns the whole page, which ends with a line break.

    Args:
        report: What to show.
        thumbnails: Pictures of flagged samples. They are data: give them only where the user asked for them.
    """
    pictures: dict[SampleId, list[Thumbnail]] = {}
    for picture in thumbnails:
        pictures.setdefault(picture.sample_id, []).append(picture)
    shown = visible(report)
    plots, no_plots = _plots(shown)
    values = {
        **_common(shown),
        "findings": [
            _finding(row, original, pictures)
            for row, original in zip(shown.findings[:MOST_FINDINGS], report.findings, strict=False)
        ],
        "num_left_out": max(0, len(shown.findings) - MOST_FINDINGS),
        "facts": _target_facts(shown),
        "reasons": _reasons(shown),
        "plots": plots,
        "no_plots": no_plots,
        "has_thumbnails": bool(thumbnails),
    }
    return _environment().get_template("page.html.j2").render(values).strip() + "\n"


def render_short(report: Report) -> str:
    """Returns verdict and findings as a piece of HTML whose style touches nothing around it."""
    shown = visible(report)
    values = {**_common(shown), "rows": shown.findings[:MOST_FINDINGS]}
    return _environment().get_template("short.html.j2").render(values).strip() + "\n"


@functools.cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra("HTML needs jinja2", do="pip install 'headrace[report]'") from error
    folder = pathlib.Path(__file__).with_name("templates")
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"page": rule_page, "clip": _clip, "counted": count}
    return found


def _common(report: Report) -> dict[str, Any]:
    severities = [row.severity for row in report.findings]
    worst = next((kind for kind in WORDS if kind in severities), report.verdict)
    return {
        "report": report,
        "verdict": verdict_sentence(report),
        "worst": worst,
        "word": {"error": "Errors", "warning": "Warnings", "info": "Remarks", "clean": "Clean"}.get(worst, "Undecided"),
        "counts": [(kind, count(severities.count(kind), word)) for kind, word in WORDS.items() if kind in severities],
        "words": WORDS,
    }


def _finding(row: FindingRow, original: FindingRow, pictures: dict[SampleId, list[Thumbnail]]) -> dict[str, Any]:
    """One finding as the page shows it. Pictures are found by the ids as they are, not as they are shown."""
    found = [picture for sample_id in original.sample_ids for picture in pictures.get(sample_id, ())]
    return {
        "row": row,
        "facts": [(name, _clip(text)) for name, text in facts_of(row)],
        "stack": _clip(str(row.evidence.get("stack") or ""), 3 * LONGEST),
        "ids": row.sample_ids[:MOST_IDS],
        "num_more_ids": max(0, len(row.sample_ids) - MOST_IDS),
        "pictures": [
            {
                "caption": " ".join(filter(None, [f"{picture.sample_id}", picture.field and f"[{picture.field}]"])),
                "note": picture.note,
                "data": None if picture.png is None else base64.b64encode(picture.png).decode("ascii"),
            }
            for picture in found
        ],
    }


def _target_facts(report: Report) -> list[tuple[str, str]]:
    """What was examined, name by name, in the order of the report."""
    return [
        (name.replace("num_", "").replace("_", " "), f"{value:,}" if isinstance(value, int) else _clip(str(value), 200))
        for name, value in report.target.items()
        if value is not None and name != "spec"
    ]


def _reasons(report: Report) -> list[tuple[str, list[str], bool]]:
    """(reason, codes, whether the rules failed themselves) of what was skipped, failures first."""
    found: dict[tuple[bool, str], list[str]] = {}
    for row in sorted(report.skipped, key=lambda row: not row.crashed):
        found.setdefault((row.crashed, row.reason), []).append(f"{row.code} {row.name}")
    return [(_clip(reason), codes, crashed) for (crashed, reason), codes in found.items()]


def _plots(report: Report) -> tuple[list[tuple[str, str]], str]:
    """(title, SVG) of each plot, and why there are none."""
    titled = (("Where the time of a sample goes", plot_stages), ("What each experiment took", plot_runs))
    try:
        drawn = [(title, plot(report)) for title, plot in titled]
    except MissingExtra as error:
        return [], f"{error.what}: {'; '.join(error.do)}. The tables below hold the same numbers."
    return [(title, svg) for title, svg in drawn if svg is not None], ""


def _clip(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most:,} characters more)"
