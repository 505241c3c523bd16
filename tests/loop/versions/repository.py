"""Repositories of git, made with git itself."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def run(folder: pathlib.Path, *command: str) -> str:
    """Runs a program as somebody who has set nothing up."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": str(folder / "no-such-file"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
        "DVC_NO_ANALYTICS": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def commit(folder: pathlib.Path, words: str = "data") -> str:
    """Commits everything; returns the commit."""
    if not (folder / ".git").exists():
        run(folder, "git", "init", "-q")
    run(folder, "git", "add", "-A")
    run(folder, "git", "commit", "-q", "-m", words)
    return run(folder, "git", "rev-parse", "HEAD")
