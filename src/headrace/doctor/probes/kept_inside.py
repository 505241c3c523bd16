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

from headrace.doctor.lab.sightings import MESSAGE_CHARS, Sightings
from headrace.doctor.stacks import describe_frame, is_user_code

__all__ = ["Asked", "Raised", "Watch", "watching"]

MAX_RAISED = 64
MAX_ASKED = 256
_NO_ERRORS = (StopIteration, StopAsyncIteration, GeneratorExit, ImportError)
"""How Python ends a loop, and how programs look for optional libraries."""


@dataclasses.dataclass(slots=True, eq=False)
class Asked:
    """One call of `__getitem__` with a row number, on a data set of the user's own."""

    holder: int
    """Identity of the object asked."""
    row: int
    num_raised: int
    """Exceptions seen before it."""
    is_dataset: bool
    """False for what only has rows as well, such as a vocabulary."""
    answer: Any = None
    """What it returned; None: nothing yet, or an exception left it."""


@dataclasses.dataclass(slots=True, eq=False)
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
    through: list[Asked] = dataclasses.field(default_factory=list)
    """Calls of `__getitem__` that it reached."""


class Watch:
    """What was seen during one sample."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self.raised: list[Raised] = []
        self.asked: list[Asked] = []
        self._asked_in: dict[FrameType, Asked] = {}
        # The exception itself: another one made after it was gone may lie at the same address.
        self._last: tuple[BaseException, Raised] | None = None

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """For `sys.settrace`: called when any function is entered; follows the user's own."""
        del event, argument
        code = frame.f_code
        if not _is_user_file(code.co_filename):
            return None
        if code.co_name == "__getitem__" and code.co_argcount >= 2 and len(self.asked) < MAX_ASKED:
            self._note_asked(frame)
        frame.f_trace_lines = False
        return self._follow

    def _note_asked(self, frame: FrameType) -> None:
        names = frame.f_code.co_varnames
        holder, row = frame.f_locals.get(names[0]), frame.f_locals.get(names[1])
        if not isinstance(row, SupportsIndex) or isinstance(row, bool):
            return
        is_dataset = not self.asked or any("Dataset" in kind.__name__ for kind in type(holder).__mro__)
        with contextlib.suppress(Exception):  # an array of several rows, ...
            asked = Asked(id(holder), row.__index__(), len(self.raised), is_dataset)
            self.asked.append(asked)
            self._asked_in[frame] = asked

    def answer_instead(self, raised: Raised) -> Asked | None:
        """Returns the last call that answered for one which this exception reached: the same data set, another row.

        A data set may also ask itself for a partner to mix with. So the answer has to be handed on as it is, unless the
        exception is one that only trouble with the data raises.
        """
        number = self.raised.index(raised) + 1
        later = [
            (one, first)
            for one in self.asked
            for first in raised.through
            if one.num_raised >= number and first.is_dataset and one.holder == first.holder and one.row != first.row
        ]
        if not any(one.num_raised == number for one, _ in later):
            return None  # another exception lies between it and the answer
        is_about_file = raised.is_explicit and raised.path is not None
        is_sure = raised.by_decoder or is_about_file or "OSError" in raised.type_names
        handed_on = [one for one, _ in later if one.answer is not None and self._is_handed_on(one)]
        if handed_on:
            return handed_on[-1]
        return later[-1][0] if later and is_sure else None

    def _is_handed_on(self, asked: Asked) -> bool:
        return any(one is not asked and one.answer is asked.answer for one in self.asked)

    def _follow(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return" and frame in self._asked_in:
            self._asked_in.pop(frame).answer = argument
        if event == "exception":
            error = argument[1]
            if not isinstance(error, _NO_ERRORS):
                self._note(error, frame)
        return self._follow

    def _note(self, error: BaseException, frame: FrameType) -> None:
        place = describe_frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        asked = self._asked_in.get(frame)
        if self._last is not None and self._last[0] is error:
            self._last[1].at = place
            self._last[1].through += [asked] if asked is not None else []
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
        raised.through += [asked] if asked is not None else []
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
