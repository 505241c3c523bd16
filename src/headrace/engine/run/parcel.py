"""The task on its way into a worker: inherited by fork, pickled for processes that start from nothing.

Pickled by multiprocessing's own pickler, because only that one can pass locks, shared values and queues that a data
set holds; but tensors go as plain bytes unless the user shared them, since torch's reduction would move the memory of
the user's data set into shared memory for good.
"""

from __future__ import annotations

import functools
import io
import multiprocessing.reduction
import pickle
import types
from collections.abc import Iterator
from typing import Any

from headrace.engine.run.packing import reduce_tensor
from headrace.errors import ConfigurationError
from headrace.protocols import Task

__all__ = ["Parcel", "find_unpicklable"]


class Parcel:
    """A task for workers.

    Pickled only while a process starts; then `open` unpickles it inside the worker, where a failure can be caught and
    carried home.
    """

    def __init__(self, task: Task[Any, Any] | None, data: bytes | None = None, method: str = "fork") -> None:
        self._task = task
        self._data = data
        self._method = method

    def __reduce__(self) -> tuple[Any, ...]:
        return Parcel, (None, self._pickled(), self._method)

    def open(self) -> Task[Any, Any]:
        """Returns the task, in the worker."""
        if self._task is None:
            try:
                self._task = pickle.loads(self._data or b"")
            except Exception as error:
                error.add_note(
                    f"headrace: a worker started by {self._method!r} could not rebuild the data set, transforms or "
                    "collate_fn from their pickle\n"
                    "  do:    define them in an importable module, not in a notebook or a shell\n"
                    '  do:    multiprocessing_context="fork"    # workers inherit them instead'
                )
                raise
            self._data = None
        return self._task

    def _pickled(self) -> bytes:
        try:
            return _pickle(self._task)
        except Exception as error:
            path, part = find_unpicklable(self._task)
            raise ConfigurationError(
                f"{path} ({_describe(part)}) cannot be pickled, so no worker can be started by {self._method!r}",
                why=f"{type(error).__name__}: {error}",
                do=(
                    f"make {path} picklable: a function at the top of a module, a file opened on first use",
                    'multiprocessing_context="fork"    # workers inherit the object instead of a pickle',
                    "num_workers=0                     # no workers",
                ),
            ) from error


def find_unpicklable(value: Any) -> tuple[str, Any]:
    """Returns the path of the innermost part of a task that does not pickle, and that part."""
    path, seen = "task", {id(value)}
    while True:
        for step, part in _parts(value):
            if id(part) not in seen and not _is_picklable(part):
                path, value = path + step, part
                seen.add(id(part))
                break
        else:
            return path, value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object is made of, as far as pickle would follow it, with the text that leads there."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif not isinstance(value, (type, types.FunctionType, types.ModuleType)):
        for name in [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]:
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)
        yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())


class _TaskPickler(multiprocessing.reduction.ForkingPickler):
    def reducer_override(self, value: Any) -> Any:
        reduced = reduce_tensor(value)
        # A tensor that the user put into shared memory is meant to be one memory for all: torch's reduction keeps it so.
        return NotImplemented if reduced is NotImplemented or value.is_shared() else reduced


def _pickle(value: Any) -> bytes:
    stream = io.BytesIO()
    _TaskPickler(stream, 5).dump(value)
    return stream.getvalue()


def _is_picklable(value: Any) -> bool:
    try:
        _pickle(value)
    except Exception:
        return False
    return True


def _describe(part: Any) -> str:
    """What a part is, with the place of its code if it is a function."""
    if isinstance(part, types.FunctionType):
        code = part.__code__
        return f"function {part.__qualname__}, {code.co_filename}:{code.co_firstlineno}"
    return f"a {type(part).__module__}.{type(part).__qualname__}".replace("a builtins.", "a ")
