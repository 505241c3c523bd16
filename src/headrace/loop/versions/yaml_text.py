"""Reads YAML with DVC's own reader where DVC is installed, else with PyYAML."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from headrace.errors import DataVersionError, MissingExtra, Where
from headrace.loop.versions.commands import git_command, shown

__all__ = ["read_yaml"]


def read_yaml(text: str, file: pathlib.Path) -> Any:
    """Returns what the text says, scalars as strings or as what YAML 1.2 takes them for.

    Raises:
        DataVersionError: it is no YAML; says the line.
        MissingExtra: neither DVC nor PyYAML is installed.
    """
    try:
        return _parsed(text, file)
    except MissingExtra:
        raise
    except Exception as error:  # of either library, and neither is imported here
        line = _line_of(error)
        place = shown(file) if line is None else f"{shown(file)}:{line}"
        raise DataVersionError(
            f"{place} cannot be read as YAML: {_said_by(error)}",
            where=Where(path=place),
            why="probably a conflict of a merge is in it" if "<<<<<<<" in text else None,
            do=git_command(None, "diff --", file) + "    # what was changed in it",
        ) from error


def _parsed(text: str, file: pathlib.Path) -> Any:
    try:
        from dvc.utils.serialize import parse_yaml
    except ImportError:
        pass
    else:
        return parse_yaml(text, os.fspath(file))
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra(
            f"reading {file.name} needs PyYAML or DVC, and neither is installed", do="pip install 'headrace[version]'"
        ) from error
    # Strings only: PyYAML follows YAML 1.1, where a folder called `no`, which DVC writes without quotes, would be False.
    return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))  # noqa: S506 (makes nothing but strings)


def _chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _line_of(error: BaseException) -> int | None:
    """The line, from 1; both readers keep it in `problem_mark`, DVC's in the error's cause."""
    marks = (getattr(one, "problem_mark", None) for one in _chain(error))
    return next((mark.line + 1 for mark in marks if mark is not None), None)


def _said_by(error: BaseException) -> str:
    problems = (getattr(one, "problem", None) for one in _chain(error))
    return next((str(problem) for problem in problems if problem), str(error).splitlines()[0])
