"""Watches exceptions in the user's own frames while one sample is prepared: which of them never come out?

Only calls of functions in the user's files are followed, and only by their exceptions, so decoders and torch run at
full speed. A debugger or a coverage tool that is already there is left in its place, and nothing is seen.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import functools
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, SupportsIndex

from headrace.doctor.sightings import MESSAGE_CHARS, Sightings
from headrace.doctor.stacks import describe_frame, is_user_code

__all__ = ["Asked", "Raised", "Watch", "watching"]

MAX_RAISED = 64
MAX_ASKED = 256
_NO_ERRORS = (StopIteration, StopAsyncIteration, GeneratorExit, ImportError)
"""How Python ends a loop, and how programs look for optional libraries."""


@dataclasses.dataclass(slots=True)
class Raised:
    """One exception that passed through at least one of the user's frames."""

    type_names: tuple[str, ...]
    """Its class and the bases of it, the class first."""
    message: str
    path: str | None
    """File that was opened last before it."""
    num_opens: int
    """Openings of files before it."""
    at: str
    """The outermost of the user's frames that it reached: if it did not come out, the one that kept it."""
    by_decoder: bool
    is_explicit: bool
    """True if a `raise` in the user's own code made it: somebody has looked at the data and found them wanting."""


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """One call of `__getitem__` with a row number, on a data set of the user's own."""

    holder: int
    """Identity of the object asked."""
    row: int
    num_raised: int
    """Exceptions seen before it."""


class Watch:
    """What was seen during one sample."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self.raised: list[Raised] = []
        self.asked: list[Asked] = []
        # The exception itself: another one made after it was gone may lie at the same address.
        self._last: tuple[BaseException, Raised] | None = None

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """For `sys.settrace`: called when any function is entered; follows the user's own."""
        del event, argument
        code = frame.f_code
        if not _is_user_file(code.co_filename):
            return None
        if code.co_name == "__getitem__" and code.co_argcount >= 2 and len(self.asked) < MAX_ASKED:
            row = frame.f_locals.get(code.co_varnames[1])
            if isinstance(row, SupportsIndex) and not isinstance(row, bool):
                with contextlib.suppress(Exception):  # an array of several rows, ...
                    asked = Asked(id(frame.f_locals.get(code.co_varnames[0])), row.__index__(), len(self.raised))
                    self.asked.append(asked)
        frame.f_trace_lines = False
        return self._follow

    def _follow(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "exception":
            error = argument[1]
            if not isinstance(error, _NO_ERRORS):
                self._note(error, frame)
        return self._follow

    def _note(self, error: BaseException, frame: FrameType) -> None:
        place = describe_frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        if self._last is not None and self._last[0] is error:
            self._last[1].at = place
            return
        if len(self.raised) >= MAX_RAISED:
            return
        try:
            message = str(error).partition("\n")[0][:MESSAGE_CHARS]
        except Exception:  # a __str__ of the user's own that fails
            message = ""
        kinds = tuple(kind.__name__ for kind in type(error).__mro__ if kind not in {object, BaseException})
        seen = self._sightings
        raised = Raised(kinds, message, seen.in_hand, len(seen.opens), place, seen.is_refusal(error), _is_raise(frame))
        filename = getattr(error, "filename", None)
        if isinstance(filename, str):
            raised.path = seen.in_hand if seen.in_hand and seen.in_hand.endswith(filename) else filename
        self.raised.append(raised)
        self._last = (error, raised)


def _is_raise(frame: FrameType) -> bool:
    """True if the frame stands at a `raise` statement."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and dis.opname[code[at]] == "RAISE_VARARGS"


_is_user_file = functools.cache(is_user_code)


@contextlib.contextmanager
def watching(sightings: Sightings) -> Iterator[Watch]:
    """Watches this thread while the block runs."""
    watch = Watch(sightings)
    if sys.gettrace() is not None:
        yield watch
        return
    sys.settrace(watch.enter)
    try:
        yield watch
    finally:
        sys.settrace(None)
