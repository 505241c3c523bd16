"""Arguments and options that several commands share, each with one meaning and one help text."""

from __future__ import annotations

import enum
import pathlib
import re
from typing import Annotated

import typer

__all__ = [
    "Format",
    "FormatOption",
    "IgnoreOption",
    "OutputFile",
    "ReportFormat",
    "SelectOption",
    "Target",
    "parse_codes",
    "parse_duration",
]

UNITS_S = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}


class Format(enum.StrEnum):
    """How a result is written."""

    text = "text"
    json = "json"


class ReportFormat(enum.StrEnum):
    """How a report is written."""

    text = "text"
    json = "json"
    html = "html"
    sarif = "sarif"
    github = "github"
    junit = "junit"


def parse_duration(text: str | float) -> float:
    """Returns seconds.

    >>> [parse_duration(text) for text in ("90s", "2m", "1500ms", "7")]
    [90.0, 120.0, 1.5, 7.0]
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text).lower())
    if found is None or found[2] not in UNITS_S:
        raise typer.BadParameter(f"{text!r} is no duration; write 90s, 2m, 1500ms, or plain seconds")
    if not float(found[1]):
        raise typer.BadParameter(f"{text!r}: a duration is longer than 0")
    return float(found[1]) * UNITS_S[found[2]]


def parse_codes(text: str | None) -> tuple[str, ...]:
    """Returns the codes of a list with commas or spaces; no list is an empty one.

    >>> parse_codes("HR301, hr1")
    ('HR301', 'hr1')
    """
    return tuple(code for code in re.split(r"[,\s]+", text or "") if code)


Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="What to look at: train.py:make_loader, package.module:loader; a loader, a data set, or a function that "
        "returns one.",
        show_default=False,
    ),
]

OutputFile = Annotated[
    pathlib.Path | None,
    typer.Option("--output", help="Write the result to this file instead of stdout.", metavar="FILE", dir_okay=False),
]

FormatOption = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]

SelectOption = Annotated[
    str | None,
    typer.Option("--select", metavar="CODES", help="Only these rules: codes or their beginnings, with commas."),
]

IgnoreOption = Annotated[str | None, typer.Option("--ignore", metavar="CODES", help="Not these rules.")]
