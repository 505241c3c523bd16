"""What the `where` of a finding points to: a line of source, a file of the data, or a part of an object."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import urllib.parse
from typing import Any

from headrace.doctor.report.model import FindingRow, Report

__all__ = ["Place", "as_uri", "place_of", "source_line", "target_file"]

_SOURCE_LINE = re.compile(r"(?P<file>.+?\.\w+):(?P<line>[1-9]\d{0,8})(?: in (?P<function>.+))?", re.DOTALL)
_SOURCE = re.compile(r".+\.(?:py|pyi|ipynb|toml|ya?ml|cfg)", re.DOTALL)
"""Files that are no data, also where no folder says that this is a path and not an attribute."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a finding points to, as far as it is a file."""

    file: str
    line: int | None = None
    """From 1; None: the file as a whole."""
    function: str | None = None


def source_line(where: str | None) -> Place | None:
    """Returns the place that `train.py:31` or `train.py:31 in crop` names; None for anything else."""
    found = _SOURCE_LINE.fullmatch(where or "")
    return None if found is None else Place(found["file"], int(found["line"]), found["function"])


def place_of(row: FindingRow, report: Report) -> Place | None:
    """Returns the file that a finding is about: its own line or file, else the file of TARGET; None: there is none.

    Paths start at the current folder where they can: render a report in the folder in which it was made.
    """
    where = row.where or ""
    if place := source_line(where):
        return dataclasses.replace(place, file=_from_here(place.file))
    if _SOURCE.fullmatch(where) or ("/" in where and "://" not in where):
        return Place(_from_here(where))
    file = target_file(report.target)
    return None if file is None else Place(_from_here(file))


def _from_here(file: str) -> str:
    """The file relative to the current folder if it lies below it: code hosts know no other folder."""
    try:
        return str(pathlib.PurePath(file).relative_to(pathlib.Path.cwd()))
    except (ValueError, OSError):
        return file


def target_file(target: dict[str, Any]) -> str | None:
    """Returns the file of a TARGET such as `train.py:make_loader`; None for a module or an object."""
    file = str(target.get("spec") or "").rpartition(":")[0]
    return file if file.endswith(".py") else None


def as_uri(path: str) -> str:
    """Returns a path as a URI reference: relative if the path is, else with the scheme `file`."""
    path = path.removeprefix("./")
    quoted = urllib.parse.quote(path, safe="/-._~", errors="surrogateescape")
    return f"file://{quoted}" if path.startswith("/") else quoted
