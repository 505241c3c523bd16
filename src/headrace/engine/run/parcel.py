"""The task on its way into a worker: inherited by fork, pickled for processes that start from nothing.

    task ──pickle, once──▶ structure + buffers ──▶ one nameless file in memory ──▶ mapped by each worker, copy on write

Pickled by multiprocessing's own pickler, because only that one can pass locks, shared values and queues that a data
set holds; but tensors go as plain bytes unless the user shared them, since torch's reduction would move the memory of
the user's data set into shared memory for good. Arrays, tensors and long lists of text or numbers are buffers: they
exist once for all workers until one writes to them. And since a process is given no more than the number of a
descriptor, its parent need not wait until its interpreter is up and reads: workers start in parallel.
"""

from __future__ import annotations

import functools
import io
import mmap
import multiprocessing.context
import multiprocessing.reduction
import os
import pickle
import types
import weakref
from collections.abc import Iterator
from typing import Any

from headrace.engine.run.packing import reduce_tensor
from headrace.engine.run.plain_columns import LEAST_LENGTH, pack_columns, unpack_columns
from headrace.engine.run.slots_memory import nameless_file
from headrace.errors import ConfigurationError
from headrace.protocols import Task

__all__ = ["Parcel", "find_unpicklable"]

_LEAST_BYTES = 1 << 14  # from here on a buffer goes into the file: a few pages
_ALIGNMENT = 64  # of buffers, as numpy and torch align theirs: a cache line


class Parcel:
    """A task for workers.

    Pickled only while a process starts; then `open` unpickles it inside the worker, where a failure can be caught and
    carried home.
    """

    def __init__(self, task: Task[Any, Any] | None, arrived: _Arrived | None = None, method: str = "fork") -> None:
        self._task = task
        self._arrived = arrived
        self._method = method
        self._cargo: _Cargo | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._cargo is not None:
            return Parcel, (None, self._cargo, self._method)
        cargo = self._packed()
        if not cargo.is_for_one:
            self._cargo = cargo
        return Parcel, (None, cargo, self._method)

    def open(self) -> Task[Any, Any]:
        """Returns the task, in the worker."""
        if self._task is None:
            try:
                self._task = self._arrived.unpack() if self._arrived else None
            except Exception as error:
                error.add_note(
                    f"headrace: a worker started by {self._method!r} could not rebuild the data set, transforms or "
                    "collate_fn from their pickle\n"
                    "  do:    define them in an importable module, not in a notebook or a shell\n"
                    '  do:    multiprocessing_context="fork"    # workers inherit them instead'
                )
                raise
            self._arrived = None
        return self._task  # type: ignore[return-value] # a parcel has a task or its cargo

    def _packed(self) -> _Cargo:
        try:
            return _pack(self._task)
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


class _Cargo:
    """A pickle and its buffers: small ones within it, large ones one after another in a file."""

    def __init__(self, *, has_file: bool) -> None:
        self._pickled = b""
        self._file: io.BufferedWriter | None = None
        if has_file:
            fd = nameless_file("headrace-parcel")
            weakref.finalize(self, os.close, fd)
            self._file = open(fd, "wb", closefd=False)  # noqa: SIM115 - the line above closes it
        self._places: list[tuple[int, int, bool]] = []
        """(begin, end, may only be read) of each buffer in the file."""
        self.is_for_one = False
        """True if it holds descriptors that were passed to one process: another needs a pickle of its own."""

    def take(self, buffer: pickle.PickleBuffer) -> bool:
        """Called for each buffer of a pickle; True leaves it within the pickle."""
        raw = buffer.raw()
        if self._file is None or len(raw) < _LEAST_BYTES:
            return True
        begin = -(-self._file.tell() // _ALIGNMENT) * _ALIGNMENT
        self._file.seek(begin)
        self._file.write(raw)
        self._places.append((begin, begin + len(raw), raw.readonly))
        return False

    def close(self, pickled: bytes, *, is_for_one: bool) -> None:
        """Called with the pickle when it is complete; a large one goes into the file as well, behind its buffers."""
        self.is_for_one = is_for_one
        if self._file is None or self.take(pickle.PickleBuffer(pickled)):
            self._pickled = pickled
        if self._file is not None:
            self._file.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        # Only while a process starts: DupFd hands the descriptor over.
        has_file = self._file is not None and self._places
        descriptor = multiprocessing.reduction.DupFd(self._file.fileno()) if has_file and self._file else None
        return _Arrived, (self._pickled, self._places, descriptor)


class _Arrived:
    """A cargo in the worker."""

    def __init__(self, pickled: bytes, places: list[tuple[int, int, bool]], descriptor: Any) -> None:
        self._pickled = pickled
        self._places = places
        self._fd = -1 if descriptor is None else descriptor.detach()

    def unpack(self) -> Any:
        """Returns the value; its arrays are writable if they were, and what is written stays in this process."""
        buffers: list[memoryview] = []
        if self._fd >= 0:
            try:
                memory = memoryview(mmap.mmap(self._fd, 0, flags=mmap.MAP_PRIVATE))
            finally:
                os.close(self._fd)
            parts = ((memory[begin:end], is_fixed) for begin, end, is_fixed in self._places)
            buffers = [part.toreadonly() if is_fixed else part for part, is_fixed in parts]
        pickled = self._pickled or buffers.pop()
        return _TaskUnpickler(io.BytesIO(pickled), buffers=buffers).load()


def _pack(value: Any) -> _Cargo:
    """Returns the cargo of a value, as the process that is being started needs it.

    Raises:
        Exception: whatever pickling a part of the value raises.
    """
    try:
        cargo = _Cargo(has_file=True)
        return _pickle_into(cargo, value)
    except OSError:  # no file, no space left in it, or a part of the value that raises the same again
        return _pickle_into(_Cargo(has_file=False), value)


def _pickle_into(cargo: _Cargo, value: Any) -> _Cargo:
    # Locks, queues and shared values pass descriptors on by adding them to those of the process that is being started.
    started = multiprocessing.context.get_spawning_popen()
    passed = getattr(started, "_fds", None)
    num_before = len(passed or ())
    stream = io.BytesIO()
    _TaskPickler(stream, cargo.take).dump(value)
    cargo.close(stream.getvalue(), is_for_one=passed is None or len(passed) > num_before)
    return cargo


class _TaskPickler(multiprocessing.reduction.ForkingPickler):
    def __init__(self, stream: io.BytesIO, take: Any) -> None:
        super().__init__(stream, 5, True, take)  # noqa: FBT003 - it takes nothing by name
        self._seen: dict[int, tuple[Any, int | None]] = {}
        """For each long list, by id: itself, so that no other can get its id, and its number if it went as columns."""

    def persistent_id(self, value: Any) -> Any:
        # Called before pickle looks into a value: a list that goes as columns costs nothing for its elements.
        if type(value) not in _LONG or len(value) < LEAST_LENGTH:
            return None
        if id(value) in self._seen:
            _, number = self._seen[id(value)]
            return None if number is None else (number, None)
        columns = pack_columns(value)
        number = None if columns is None else len(self._seen)
        self._seen[id(value)] = value, number
        return None if columns is None else (number, columns)

    def reducer_override(self, value: Any) -> Any:
        reduced = reduce_tensor(value)
        # A tensor that the user put into shared memory is meant to be one memory for all: torch's reduction keeps it so.
        return NotImplemented if reduced is NotImplemented or value.is_shared() else reduced


_LONG = frozenset({list, tuple, dict})


class _TaskUnpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, buffers: list[memoryview]) -> None:
        super().__init__(stream, buffers=buffers)
        self._seen: dict[int, Any] = {}

    def persistent_load(self, pid: Any) -> Any:
        number, columns = pid
        if columns is not None:
            self._seen[number] = unpack_columns(columns)
        return self._seen[number]


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


def _is_picklable(value: Any) -> bool:
    try:
        _pickle_into(_Cargo(has_file=False), value)
    except Exception:
        return False
    return True


def _describe(part: Any) -> str:
    """What a part is, with the place of its code if it is a function."""
    if isinstance(part, types.FunctionType):
        code = part.__code__
        return f"function {part.__qualname__}, {code.co_filename}:{code.co_firstlineno}"
    return f"a {type(part).__module__}.{type(part).__qualname__}".replace("a builtins.", "a ")
