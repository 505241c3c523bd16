"""Every form that a report can be written in, by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.doctor.report.model import Report
from headrace.doctor.report.thumbnail import Thumbnail

__all__ = ["FORMATS", "write_as"]

FORMATS = ("text", "json", "html", "sarif", "github", "junit")


def write_as(name: str, report: Report, thumbnails: Sequence[Thumbnail] = ()) -> str:
    """Returns the report in the form of that name, as text that ends with a line break.

    Args:
        name: One of `FORMATS`.
        report: What to write.
        thumbnails: Pictures of flagged samples, for HTML only.
    """
    return _writers(thumbnails)[name](report)


def _writers(thumbnails: Sequence[Thumbnail]) -> dict[str, Callable[[Report], str]]:
    from headrace.doctor.report.github import to_github
    from headrace.doctor.report.html import render_page
    from headrace.doctor.report.json import to_json
    from headrace.doctor.report.junit import to_junit
    from headrace.doctor.report.sarif import to_sarif
    from headrace.doctor.report.text import render

    return {
        "text": render,
        "json": lambda report: to_json(report).decode(),
        "html": lambda report: render_page(report, thumbnails),
        "sarif": lambda report: to_sarif(report).decode(),
        "github": to_github,
        "junit": lambda report: to_junit(report).decode(),
    }
