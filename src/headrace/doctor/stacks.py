"""Finds the user's own code in tracebacks and in stack dumps, and leaves the frames of headrace out of both."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import sys
import sysconfig
import traceback
import types
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = [
    "describe_frame",
    "innermost_at",
    "is_doctors",
    "is_user_code",
    "trim_dump",
    "user_modules",
    "user_sources",
    "user_traceback",
]

MAX_STACK_CHARS = 6000
"""Enough for some forty frames; a recursion of a thousand frames says nothing more."""

_PACKAGE = str(pathlib.Path(__file__).parents[1]) + os.sep
_DOCTOR = str(pathlib.Path(__file__).parent) + os.sep
_DOCTOR_NAME = __name__.rpartition(".")[0]
_DUMPED_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({str(pathlib.Path(paths[key]).resolve()) + os.sep for key in ("stdlib", "platstdlib")})


def is_user_code(filename: str) -> bool:
    """Returns True for a file that is neither Python's, nor an installed library's, nor headrace's."""
    if filename.startswith("<") or f"{os.sep}site-packages{os.sep}" in filename:
        return False
    if f"{os.sep}dist-packages{os.sep}" in filename or filename.startswith(_PACKAGE):
        return False
    return not filename.startswith(_library_folders())


def is_doctors(value: Any) -> bool:
    """True for a function or an object of the doctor itself: what it holds is none of the user's."""
    if isinstance(value, types.FunctionType):  # `functools.wraps` gives a spy the module of what it stands for
        return value.__code__.co_filename.startswith(_DOCTOR)
    return type(value).__module__.startswith(_DOCTOR_NAME)


def user_modules() -> Iterator[types.ModuleType]:
    """Yields the modules of the user's own that are imported now."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_user_code(file):
            yield module


def user_sources() -> list[pathlib.Path]:
    """Returns their Python files, each once, in the order in which they were imported."""
    files = dict.fromkeys(str(module.__file__) for module in user_modules())
    return [pathlib.Path(file) for file in files if file.endswith(".py")]


def describe_frame(filename: str, line: int | None, function: str) -> str:
    """Returns `file:line in function`, the file relative to the current folder if it lies below it."""
    try:
        shown = str(pathlib.Path(filename).relative_to(pathlib.Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or the current folder is gone
        shown = filename
    return f"{shown}:{line} in {function}"


def innermost_at(error: BaseException) -> str | None:
    """Returns where an exception was raised: the innermost frame of the user's code, else the innermost not ours."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    return _innermost((frame.filename, frame.lineno, frame.name) for frame in reversed(frames))


def _innermost(frames: Iterable[tuple[str, int | None, str]]) -> str | None:
    """Of frames with the innermost first: the first of the user's, else the first."""
    listed = list(frames)
    chosen = next((frame for frame in listed if is_user_code(frame[0])), listed[0] if listed else None)
    return None if chosen is None else describe_frame(*chosen)


def user_traceback(error: BaseException) -> str:
    """Returns the formatted traceback of an exception, and of those it came from, without the frames of headrace."""
    shown = traceback.TracebackException.from_exception(error)
    pending, seen = [shown], {id(shown)}
    while pending:
        one = pending.pop()
        one.stack = traceback.StackSummary.from_list(
            [frame for frame in one.stack if not frame.filename.startswith((_PACKAGE, "<frozen importlib"))]
        )
        following = [part for part in (one.__cause__, one.__context__) if part is not None and id(part) not in seen]
        seen.update(map(id, following))
        pending += following
    return _clipped("".join(shown.format()).rstrip())


def trim_dump(dump: str) -> tuple[str | None, str]:
    """Reads a dump by `faulthandler`, in which the innermost frame comes first.

    Returns:
        Where the user's code stood (as `innermost_at`; None if no thread can be read), and the dump with the frames
        of headrace left out. The thread that prepares samples is the one in which headrace's own frames lie.
    """
    blocks = [block for block in dump.split("\n\n") if "(most recent call first)" in block]
    ours = [block for block in blocks if _PACKAGE in block]
    current = [block for block in blocks if block.startswith("Current thread")]
    place = None
    for block in [*ours, *current, *blocks][:1]:
        frames = [match for match in map(_DUMPED_FRAME.match, block.splitlines()) if match is not None]
        place = _innermost(
            (frame["file"], int(frame["line"]), frame["function"])
            for frame in frames
            if not frame["file"].startswith(_PACKAGE)
        )
    noise = (_PACKAGE, "<frozen runpy>", "Extension modules:")
    kept = [line for line in dump.splitlines() if not any(part in line for part in noise)]
    return place, _clipped("\n".join(kept).strip())


def _clipped(text: str) -> str:
    """Keeps the beginning and the end of a long text."""
    if len(text) <= MAX_STACK_CHARS:
        return text
    half = MAX_STACK_CHARS // 2
    return f"{text[:half]}\n  ... {len(text) - 2 * half:,} characters left out ...\n{text[-half:]}"
