"""Where in the user's code something was called: the first frame that is neither Python's, nor a library's, nor ours."""

from __future__ import annotations

import functools
import os
import pathlib
import sys
from types import FrameType
from typing import Any

from headrace.doctor.stacks import is_user_code

__all__ = ["is_called_directly", "maker_place", "user_calls", "user_place"]

_PACKAGE = str(pathlib.Path(__file__).parents[2]) + os.sep
_PASS_ON = (_PACKAGE, f"{os.sep}tqdm{os.sep}", f"{os.sep}rich{os.sep}")
"""Files whose frames stand between the user's `for` and the loader and change nothing."""
MOST_BETWEEN = 4
"""Frames of decorators and metaclasses between two constructors of one object."""
MOST_CALLS = 64


def user_place(frame: FrameType | None = None) -> str | None:
    """Returns `file:line` of the innermost frame of the user's code; None if there is none."""
    frame = frame or sys._getframe(1)
    found: FrameType | None = frame
    while found is not None:
        name = found.f_code.co_filename
        if _is_users(name):
            return f"{_shown(name)}:{found.f_lineno}"
        found = found.f_back
    return None


def user_calls(frame: FrameType | None = None) -> tuple[tuple[str, int, int], ...] | None:
    """Returns (file, line, place in its bytecode) of each call of the user's code that is under way, innermost first.

    Two calls of one helper in one line differ in it. None if no user's code is under way.
    """
    found: FrameType | None = frame or sys._getframe(1)
    calls: list[tuple[str, int, int]] = []
    while found is not None and len(calls) < MOST_CALLS:
        name = found.f_code.co_filename
        if _is_users(name):
            calls.append((name, found.f_lineno, found.f_lasti))
        found = found.f_back
    return tuple(calls) or None


def is_called_directly(frame: FrameType | None = None) -> bool:
    """True if the user's own code makes the call, and not a training library for it; progress bars do not count."""
    found: FrameType | None = frame or sys._getframe(1)
    while found is not None and any(part in found.f_code.co_filename for part in _PASS_ON):
        found = found.f_back
    return found is not None and _is_users(found.f_code.co_filename)


def maker_place(made: Any) -> tuple[str | None, bool]:
    """Returns where an object is being made, as `user_place` above its constructors, and whether directly by user code.

    To be called while a constructor of `made` runs.
    """
    frame: FrameType | None = sys._getframe(1)
    outermost, num_others = sys._getframe(1), 0
    while frame is not None and num_others < MOST_BETWEEN:
        code = frame.f_code
        if code.co_name == "__init__" and code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is made:
            outermost, num_others = frame, 0
        else:
            num_others += 1
        frame = frame.f_back
    caller = outermost.f_back
    if caller is None:
        return None, False
    return user_place(caller), _is_users(caller.f_code.co_filename)


@functools.lru_cache(maxsize=4096)
def _is_users(filename: str) -> bool:
    return is_user_code(filename)


@functools.lru_cache(maxsize=4096)
def _shown(filename: str) -> str:
    try:
        return str(pathlib.Path(filename).resolve().relative_to(pathlib.Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        return filename
