"""Where in the user's code something is called from."""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Any

from headrace.doctor.stacks import is_user_code

__all__ = ["maker_place", "user_place"]

_is_users = functools.cache(is_user_code)
DEEPEST = 60
"""Frames that are looked through: deep enough for a trainer library between the script and torch."""
MOST_BETWEEN = 4
"""Frames of decorators and metaclasses between two constructors of one object."""


def user_place() -> str | None:
    """Returns `file:line` of the innermost frame of the user's code; None if there is none near."""
    return _place(sys._getframe(1))


def maker_place(made: Any) -> tuple[str | None, bool]:
    """Returns where an object is being made, as `user_place` above its constructors, and whether directly by user code.

    To be called while a constructor of `made` runs.
    """
    frame: Any = sys._getframe(1)
    outermost, num_others = frame, 0
    while frame is not None and num_others < MOST_BETWEEN:
        code = frame.f_code
        if code.co_name == "__init__" and code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is made:
            outermost, num_others = frame, 0
        else:
            num_others += 1
        frame = frame.f_back
    caller = outermost.f_back
    return _place(caller), caller is not None and _is_users(caller.f_code.co_filename)


def _place(frame: Any) -> str | None:
    for _ in range(DEEPEST):
        if frame is None:
            return None
        if _is_users(frame.f_code.co_filename):
            return f"{_shown(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return None


@functools.cache
def _shown(filename: str) -> str:
    try:
        return str(pathlib.Path(filename).relative_to(pathlib.Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        return filename
