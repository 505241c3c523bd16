"""Paths as people see them, and commands that work where they stand."""

from __future__ import annotations

import os
import pathlib
import shlex

__all__ = ["absolute", "dvc_command", "git_command", "shown"]


def absolute(path: str | os.PathLike[str]) -> pathlib.Path:
    """Returns the whole path. Links stay: where data are links into DVC's cache, their own place is meant."""
    return pathlib.Path(os.path.normpath(pathlib.Path(path).absolute()))


def shown(path: str | os.PathLike[str]) -> str:
    """Returns the path from the working folder if it lies in it, else the whole one."""
    place, here = absolute(path), pathlib.Path.cwd()
    return os.fspath(place.relative_to(here)) if place.is_relative_to(here) else os.fspath(place)


def dvc_command(root: pathlib.Path | None, verb: str, target: str | os.PathLike[str]) -> str:
    """Returns a command of DVC for a target, to be pasted; `root` is the repository."""
    return _command("dvc --cd", "dvc", root, verb, target)


def git_command(root: pathlib.Path | None, verb: str, target: str | os.PathLike[str]) -> str:
    """Returns a command of git for a target, to be pasted; `root` is the repository."""
    return _command("git -C", "git", root, verb, target)


def _command(elsewhere: str, here: str, root: pathlib.Path | None, verb: str, target: str | os.PathLike[str]) -> str:
    if root is None or pathlib.Path.cwd().is_relative_to(root):
        return f"{here} {verb} {shlex.quote(os.path.relpath(target))}"
    return f"{elsewhere} {shlex.quote(os.fspath(root))} {verb} {shlex.quote(os.path.relpath(target, root))}"
