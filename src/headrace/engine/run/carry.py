"""Exceptions on their way home from a worker process.

Pickling an exception calls its constructor with `args` on the other side, which fails for every class whose
constructor takes anything else, and loses the traceback. So an exception travels as plain parts: where its class is
found, its arguments and attributes one by one, its notes, and its traceback as text. It is rebuilt without its
constructor; what cannot be rebuilt is replaced by `RemoteError`, which says everything that is known.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pickle
import traceback
from collections.abc import Mapping
from typing import Any

from headrace.errors import RemoteError

__all__ = ["WorkerTraceback", "pack_error", "stand_in", "unpack_error"]


class WorkerTraceback(Exception):
    """Shows where an exception was raised in a worker; stands as the cause of the exception raised here."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""' if self.args else ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """One argument or attribute: its pickle if it has one, and what to show otherwise."""

    pickled: bytes | None
    text: str

    def open(self) -> Any:
        """Returns the value; its text if it cannot be unpickled in this process."""
        if self.pickled is not None:
            with contextlib.suppress(Exception):
                return pickle.loads(self.pickled)
        return self.text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Carried:
    module: str
    qualname: str
    message: str
    whole: bytes | None
    """Pickle of the whole exception, where a trial has shown that it arrives equal: OSError and some others keep
    fields outside `args` and `__dict__` that only their own reduction knows."""
    args: tuple[_Part, ...]
    fields: Mapping[str, _Part]
    notes: tuple[str, ...]
    text: str
    """The traceback, causes and contexts included."""


def pack_error(error: BaseException) -> bytes:
    """Returns the bytes of an exception; never raises, whatever the exception holds."""
    lost = []
    fields = {}
    for name, value in vars(error).items():
        part = _part(value)
        if part.pickled is None:
            lost.append(f"{name} ({type(value).__name__})")
        elif name != "__notes__":
            fields[name] = part
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    if lost:
        notes.append(f"headrace: left behind in the worker, because it cannot be pickled: {', '.join(lost)}")
    carried = _Carried(
        module=type(error).__module__,
        qualname=type(error).__qualname__,
        message=_text_of(error),
        whole=_whole(error),
        args=tuple(_part(value) for value in error.args),
        fields=fields,
        notes=tuple(notes),
        text=_format(error),
    )
    return pickle.dumps(carried, protocol=5)


def unpack_error(data: Any, worker: int) -> BaseException:
    """Returns the exception to raise in the consumer, with the worker's traceback as its cause."""
    carried: _Carried = pickle.loads(data)
    error = _rebuild(carried)
    if error is None:
        error = RemoteError(
            f"worker {worker} raised {carried.module}.{carried.qualname}: {carried.message}",
            why="its class cannot be rebuilt in this process: it is defined inside a function, or not an Exception",
            do="define the exception class at the top of a module, so that it keeps its type on the way",
        )
        if "headrace_where" in carried.fields:
            error.headrace_where = carried.fields["headrace_where"].open()  # type: ignore[attr-defined] # see annotate
    if not getattr(error, "__notes__", None):
        for note in carried.notes:
            error.add_note(note)
    error.__cause__ = WorkerTraceback(carried.text)
    return error


def stand_in(error: BaseException, worker: int) -> Exception:
    """Returns what a worker's exception is raised as: itself, unless raising it would end the program.

    SystemExit or KeyboardInterrupt from a data set is a failure of that worker, not a wish of the consumer.
    """
    if isinstance(error, Exception):
        return error
    remote = RemoteError(
        f"worker {worker} raised {type(error).__module__}.{type(error).__qualname__}: {_text_of(error)}",
        why="code in a worker may not end the program; it fails the order that it was working on",
        do="raise an Exception in place of it",
    )
    remote.__cause__ = error
    return remote


def _part(value: Any) -> _Part:
    try:
        return _Part(pickle.dumps(value, protocol=5), _text_of(value))
    except Exception:
        return _Part(None, _text_of(value))


def _text_of(value: Any) -> str:
    """Text of anything, even of an object whose own text fails."""
    try:
        text = str(value) if isinstance(value, BaseException) else repr(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, whose text raises {type(error).__name__}>"
    return text if len(text) <= 2000 else text[:2000] + "..."  # a message, not a payload


def _format(error: BaseException) -> str:
    """The traceback with causes and contexts, from the first frame of the task on."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
        if len(shown.stack) > 1:
            shown.stack.pop(0)  # the worker's own frame, the same for all
        shown.__notes__ = []  # they stand on the exception itself; twice would be noise
        return "".join(shown.format())
    except Exception as failure:
        return f"<the traceback cannot be formatted: {type(failure).__name__}: {failure}>"


def _whole(error: BaseException) -> bytes | None:
    """The exception's own pickle, if a trial shows that it arrives equal; else None."""
    if not isinstance(error, Exception):
        return None
    try:
        data = pickle.dumps(error, protocol=5)
        twin = pickle.loads(data)
        is_equal = type(twin) is type(error) and str(twin) == str(error) and repr(twin.args) == repr(error.args)
    except Exception:
        return None
    return data if is_equal and vars(twin).keys() == vars(error).keys() else None


def _rebuild(carried: _Carried) -> Exception | None:
    """The exception in its own type; None if the class is not to be found or refuses to be made."""
    if carried.whole is not None:
        with contextlib.suppress(Exception):
            return _as_exception(pickle.loads(carried.whole))
    with contextlib.suppress(Exception):
        kind: Any = importlib.import_module(carried.module)
        for name in carried.qualname.split("."):
            kind = getattr(kind, name)
        args = tuple(part.open() for part in carried.args)
        # __new__ without __init__, as headrace.errors does: the constructor's arguments are not known.
        error: BaseException = kind.__new__(kind, *args)
        error.args = args
        for name, part in carried.fields.items():
            error.__dict__[name] = part.open()
        return _as_exception(error)
    return None


def _as_exception(error: Any) -> Exception | None:
    return error if isinstance(error, Exception) else None
