"""Paths as people see them, and commands that work where they stand."""

from __future__ import annotations

import os
import pathlib
import shlex

__all__ = ["absolute", "dvc_command", "git_command", "is_here", "shown", "within"]


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


def within(root: pathlib.Path | None, path: str | os.PathLike[str]) -> str | None:
    """Returns a path from a root, with `/`; None if it lies elsewhere. Links above the path are seen through."""
    if root is None:
        return None
    place, top = _real(path), pathlib.Path(os.path.realpath(root))
    return place.relative_to(top).as_posix() if place.is_relative_to(top) else None


def is_here(root: pathlib.Path | None) -> bool:
    """True if commands for this repository work in the working folder."""
    return root is None or pathlib.Path.cwd().is_relative_to(os.path.realpath(root))


def _command(elsewhere: str, here: str, root: pathlib.Path | None, verb: str, target: str | os.PathLike[str]) -> str:
    if is_here(root):
        return f"{here} {verb} {shlex.quote(os.path.relpath(_real(target), pathlib.Path.cwd()))}"
    return f"{elsewhere} {shlex.quote(str(root))} {verb} {shlex.quote(within(root, target) or os.fspath(target))}"


def _real(path: str | os.PathLike[str]) -> pathlib.Path:
    """Without links above it: git names its root so. The last part stays, it may be a link into DVC's cache."""
    place = absolute(path)
    return pathlib.Path(os.path.realpath(place.parent)) / place.name
