"""Asks git. No git, no repository, or no answer in time: no error."""

from __future__ import annotations

import os
import pathlib
import subprocess

__all__ = ["PATIENCE_S", "base_of", "git", "git_text", "root_of"]

PATIENCE_S = 10.0
"""A training must not wait longer for what is only noted down."""


def git(
    folder: str | os.PathLike[str], *arguments: str, given: bytes | None = None, patience_s: float | None = None
) -> bytes | None:
    """Returns what git prints; None if there is no git, no repository, or no answer in time (default `PATIENCE_S`)."""
    try:
        done = subprocess.run(
            ["git", "-C", os.fspath(folder), *arguments],
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            timeout=PATIENCE_S if patience_s is None else patience_s,
            check=True,
            # Looking must neither write to the user's repository (`git status` would) nor fetch from a remote.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def git_text(folder: str | os.PathLike[str], *arguments: str) -> str | None:
    """Returns what git prints, without the line end; None as `git` does."""
    said = git(folder, *arguments)
    return None if said is None else os.fsdecode(said).strip()


def base_of(path: pathlib.Path) -> pathlib.Path:
    """Returns the nearest folder that is there: git is asked from it."""
    return next(place for place in (path, *path.parents) if place.is_dir())


def root_of(path: pathlib.Path) -> pathlib.Path | None:
    """Returns the root of the git repository that a path lies in; None: in none, or no git."""
    said = git_text(base_of(path), "rev-parse", "--show-toplevel")
    return None if said is None else pathlib.Path(said)
