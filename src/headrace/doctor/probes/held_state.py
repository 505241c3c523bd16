"""What a data set holds and a reading may change: arrays, containers, attributes, random generators, by attribute path.

A snapshot keeps digests, and copies within a bound, so that a change can be named and put back: a sample that is
itself again once one array has its former values was changed through that array.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import inspect
import math
import sys
import time
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.doctor.lab.spies import without_spy
from headrace.doctor.probes.generators import get_state, is_generator, is_global, set_state
from headrace.doctor.stacks import is_doctors

__all__ = ["Change", "HeldState"]

MAX_NODES = 20_000
MAX_S = 0.5
"""Seconds for one walk; what lies further is not seen, and nothing is said about it."""
MAX_COPIED_BYTES = 64 << 20
"""Copies that one snapshot holds."""
MAX_WHOLE_BYTES = 4 << 20
"""Arrays above this size are looked at in the row of the sample only."""
MAX_ITEMS = 512
"""Containers above this size are looked at in the entries of the sample, and the first few."""
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_SKIPPED = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType, types.FrameType, *_PLAIN)

Kind = Literal["content", "value", "removed", "replaced"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that was there before and is otherwise now."""

    path: str
    """Attribute path: `dataset.images[3]`."""
    kind: Kind
    """content: values of an array or image; value: a plain value; removed: an entry is gone; replaced: other object."""
    is_of_sample: bool
    """True if it is the data set's store of this one sample: its row, or what lies under its key."""
    shape: tuple[int, ...] | None = None
    """Shape of the array."""


class _Part:
    """One thing in a snapshot. Subclasses know how to look at it and how to put it back."""

    def __init__(self, path: str, is_of_sample: bool) -> None:
        self.path, self.is_of_sample = path, is_of_sample

    def changes(self) -> list[Change]:
        raise NotImplementedError

    def restore(self, only: str | None) -> None:
        raise NotImplementedError

    def is_non_finite(self) -> bool:
        raise NotImplementedError


class _Values(_Part):
    """An array, tensor or image; `view` shares its memory, an image writes through `put`."""

    def __init__(
        self,
        path: str,
        is_of_sample: bool,
        look: Callable[[], npt.NDArray[Any]],
        put: Callable[[npt.NDArray[Any]], None],
        room: int,
    ) -> None:
        super().__init__(path, is_of_sample)
        self.look, self._put = look, put
        array = look()
        self._shape = array.shape
        self._digest = _hash(array)
        self.copy = array.copy() if array.nbytes <= room else None

    def changes(self) -> list[Change]:
        array = self.look()
        if array.shape == self._shape and _hash(array) == self._digest:
            return []
        return [Change(path=self.path, kind="content", is_of_sample=self.is_of_sample, shape=self._shape)]

    def restore(self, only: str | None) -> None:
        if self.copy is not None and only in {None, self.path} and self.changes():
            self._put(self.copy)

    def is_non_finite(self) -> bool:
        array = self.look()
        return array.dtype.kind == "f" and not bool(np.isfinite(array).all())


class _Entries(_Part):
    """A list, a dict, or the attributes of an object: plain values, and which objects it holds."""

    def __init__(
        self, path: str, is_of_sample: bool, held: Any, keys: list[Any], own_keys: Collection[Any], *, dotted: bool
    ) -> None:
        super().__init__(path, is_of_sample)
        self._held, self._own, self._dotted = held, own_keys, dotted
        self._before = {key: _entry(held, key) for key in keys}
        self._length = _size(held)

    def changes(self) -> list[Change]:
        if isinstance(self._held, list) and _size(self._held) < self._length:
            return [self._change(None, "removed")]
        found = []
        for key, before in self._before.items():
            try:
                now = _entry(self._held, key)
            except (LookupError, TypeError):
                found.append(self._change(key, "removed"))
                continue
            if now is before:
                continue
            if not (isinstance(before, _PLAIN) and isinstance(now, _PLAIN)):
                found.append(self._change(key, "replaced"))
            elif now != before and not (_is_nan(now) and _is_nan(before)):
                found.append(self._change(key, "value"))
        return found

    def is_non_finite(self) -> bool:
        return any(isinstance(value, float) and not math.isfinite(value) for value in self._before.values())

    def _change(self, key: Any, kind: Kind) -> Change:
        path = self.path if key is None else _joined(self.path, key, dotted=self._dotted)
        return Change(path=path, kind=kind, is_of_sample=self.is_of_sample or _is_in(key, self._own))

    def restore(self, only: str | None) -> None:
        if isinstance(self._held, list) and _size(self._held) < self._length:
            if len(self._before) == self._length and only in {None, self.path}:
                self._held[:] = list(self._before.values())
            return
        for key, before in self._before.items():
            if only not in {None, _joined(self.path, key, dotted=self._dotted)}:
                continue
            try:
                if _entry(self._held, key) is before:
                    continue
            except (LookupError, TypeError):
                pass
            _put_entry(self._held, key, before)


def _entry(held: Any, key: Any) -> Any:
    """An entry as the list or dict itself keeps it: a class of the user's may do anything in `__getitem__`."""
    return (list if isinstance(held, list) else dict).__getitem__(held, key)


def _put_entry(held: Any, key: Any, value: Any) -> None:
    (list if isinstance(held, list) else dict).__setitem__(held, key, value)


def _size(held: Any) -> int:
    return (list if isinstance(held, list) else dict).__len__(held)


class HeldState:
    """A snapshot of what is reachable from some roots."""

    def __init__(self, roots: Sequence[Mapping[str, Any]], *, keys: Collection[Any], num_samples: int | None) -> None:
        """Walks from the roots.

        Args:
            roots: What to start from, by the name that paths begin with; all below one mapping before the next, since
                the walk ends after `MAX_S` and `MAX_NODES`.
            keys: Under which the sample's own things are found: its row, its id, its row in an inner data set.
            num_samples: Length of the data set: an array as long has a row for each sample.
        """
        self._keys, self._num_samples = frozenset(keys), num_samples
        self._parts: list[_Part] = []
        self._room = MAX_COPIED_BYTES
        self._seen: dict[int, Any] = {}
        self.generators: dict[str, Any] = {}
        """Random generators by path, the global ones apart."""
        self.holds_records = False
        """True if something is there from which samples can come: as many entries as samples, or an array."""
        self.is_complete = self._walk(roots)

    def changes(self) -> list[Change]:
        """Returns what is otherwise now than at the time of the snapshot. What was added is no change."""
        return [change for part in self._parts for change in part.changes()]

    def restore(self, only: str | None = None) -> None:
        """Puts back what was changed, or what was changed under one path alone. What was added stays."""
        for part in self._parts:
            part.restore(only)

    def path_in(self, array: npt.NDArray[Any]) -> str | None:
        """Returns the path of the array that another one lies in; None if it lies in none that was seen."""
        found = (
            part.path for part in self._parts if isinstance(part, _Values) and np.may_share_memory(part.look(), array)
        )
        return next(found, None)

    def non_finite(self) -> list[tuple[str, bool]]:
        """Returns (path, whether it is the sample's own) of what holds NaN or infinity."""
        return [(part.path, part.is_of_sample) for part in self._parts if part.is_non_finite()]

    def generator_states(self) -> dict[str, Any]:
        """Returns the state of each generator, as `set_generators` takes it."""
        return {path: get_state(generator) for path, generator in self.generators.items()}

    def set_generators(self, states: Mapping[str, Any]) -> None:
        """Sets generators back to states they had."""
        for path, state in states.items():
            if path in self.generators:
                set_state(self.generators[path], state)

    def _walk(self, roots: Sequence[Mapping[str, Any]]) -> bool:
        deadline = time.monotonic() + MAX_S
        return all(self._walk_below(together, deadline) for together in roots)

    def _walk_below(self, roots: Mapping[str, Any], deadline: float) -> bool:
        pending = collections.deque((name, value, False) for name, value in roots.items())
        while pending:
            if len(self._seen) > MAX_NODES or time.monotonic() > deadline:
                return False
            path, value, is_of_sample = pending.popleft()
            value = without_spy(value)
            if isinstance(value, _SKIPPED) or id(value) in self._seen or is_doctors(value):
                continue
            self._seen[id(value)] = value  # kept alive, or another object could get its id
            try:
                pending.extend(self._visit(path, value, is_of_sample))
            except Exception:  # noqa: S112 - an object of the user's own that cannot be looked into
                continue
        return True

    def _visit(self, path: str, value: Any, is_of_sample: bool) -> Iterator[tuple[str, Any, bool]]:
        """Notes one thing, and yields what lies inside it."""
        if is_generator(value):
            if not is_global(value):
                self.generators[path] = value
        elif (array := _shared_array(value)) is not None:
            self._visit_array(path, array, is_of_sample)
        elif _is_image(value):
            self.holds_records = True
            self._note_values(path, is_of_sample, lambda: np.asarray(value), lambda copy: _paste(value, copy))
        elif isinstance(value, (list, dict)):
            yield from self._visit_container(path, value, is_of_sample)
        elif isinstance(value, (tuple, collections.deque, set, frozenset)):
            items = list(value)
            own = self._keys if self._note_length(len(items)) else frozenset()
            chosen = self._chosen(range(len(items)))
            yield from ((f"{path}[{i}]", items[i], is_of_sample or _is_in(i, own)) for i in chosen)
        elif isinstance(value, functools.partial):
            yield from ((f"{path}.{name}", getattr(value, name), is_of_sample) for name in ("func", "args", "keywords"))
        elif isinstance(value, types.MethodType):
            yield path, value.__self__, is_of_sample
        elif isinstance(value, types.FunctionType):
            yield from _inside_function(path, value)
        elif type(value).__name__ == "_lru_cache_wrapper":
            # What it keeps is only known to the garbage collector; each entry is what one call gave.
            yield from (
                (f"{path} (lru_cache)", part, True) for part in gc.get_referents(value) if part is not vars(value)
            )
            yield from _inside_function(path, value)
        else:
            yield from self._visit_object(path, value, is_of_sample)

    def _visit_array(self, path: str, array: npt.NDArray[Any], is_of_sample: bool) -> None:
        if array.dtype.kind not in "biufcSUM":
            return
        has_rows = array.ndim > 0 and self._note_length(array.shape[0])
        rows = [key for key in self._keys if _is_row(key, array)] if has_rows or array.nbytes > MAX_WHOLE_BYTES else []
        if rows and array.ndim > 1:
            for row in rows:
                self._note_array(f"{path}[{row}]", array[row], has_rows)
        elif array.nbytes <= MAX_WHOLE_BYTES:
            self._note_array(path, array, is_of_sample or has_rows)

    def _note_array(self, path: str, array: npt.NDArray[Any], is_of_sample: bool) -> None:
        if array.flags.writeable:
            self._note_values(path, is_of_sample, lambda: array, lambda copy: np.copyto(array, copy))

    def _note_values(self, path: str, is_of_sample: bool, look: Any, put: Any) -> None:
        part = _Values(path, is_of_sample, look, put, self._room)
        self._room -= 0 if part.copy is None else part.copy.nbytes
        self._parts.append(part)

    def _visit_container(self, path: str, value: Any, is_of_sample: bool) -> Iterator[tuple[str, Any, bool]]:
        has_rows = self._note_length(_size(value))
        keys = self._chosen(dict.keys(value) if isinstance(value, dict) else range(_size(value)))
        own = self._keys if isinstance(value, dict) or has_rows else frozenset()
        self._parts.append(_Entries(path, is_of_sample, value, keys, own, dotted=False))
        yield from (
            (_joined(path, key), held, is_of_sample or _is_in(key, own))
            for key in keys
            if not isinstance(held := _entry(value, key), _PLAIN)
        )

    def _note_length(self, length: int) -> bool:
        """True for as many entries as there are samples: a list of seven numbers is no store of seven samples."""
        has_rows = bool(self._num_samples) and length >= (self._num_samples or 0)
        self.holds_records |= has_rows
        return has_rows

    def _visit_object(self, path: str, value: Any, is_of_sample: bool) -> Iterator[tuple[str, Any, bool]]:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            self._parts.append(_Entries(path, is_of_sample, attributes, list(attributes), (), dotted=True))
            yield from ((f"{path}.{name}", part, is_of_sample) for name, part in list(attributes.items()))
        for owner in type(value).__mro__:
            names = owner.__dict__.get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if name not in {"__dict__", "__weakref__"} and hasattr(value, name):
                    yield f"{path}.{name}", getattr(value, name), is_of_sample

    def _chosen(self, keys: Collection[Any]) -> list[Any]:
        """All keys of a small container; of a large one the sample's own, and the first few."""
        if len(keys) <= MAX_ITEMS:
            return list(keys)
        own = [key for key in self._keys if _hashable_in(key, keys)]
        return list(dict.fromkeys([*own, *(key for key, _ in zip(keys, range(4), strict=False))]))


def _inside_function(path: str, function: Any) -> Iterator[tuple[str, Any, bool]]:
    function = inspect.unwrap(function)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"{path}.{name}", cell.cell_contents, False
        except ValueError:  # not assigned yet
            continue
    yield from ((f"{path} (default)", value, False) for value in function.__defaults__ or ())
    yield from ((f"{path}.{name}", value, False) for name, value in vars(function).items() if name != "__wrapped__")


def _shared_array(value: Any) -> npt.NDArray[Any] | None:
    """An array that shares memory with an array or CPU tensor; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and value.device.type == "cpu" and not value.is_sparse:
        try:
            array: npt.NDArray[Any] = value.detach().numpy()
        except (TypeError, RuntimeError):  # dtypes that numpy lacks
            return None
        return array
    return None


def _is_image(value: Any) -> bool:
    image: Any = sys.modules.get("PIL.Image")
    return image is not None and isinstance(value, image.Image) and getattr(value, "_im", None) is not None


def _paste(image: Any, copy: npt.NDArray[Any]) -> None:
    import PIL.Image

    image.paste(PIL.Image.fromarray(copy))


def _hash(array: npt.NDArray[Any]) -> str:
    return xxhash.xxh3_128(np.ascontiguousarray(array).tobytes()).hexdigest()


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_row(key: Any, array: npt.NDArray[Any]) -> bool:
    return isinstance(key, int) and 0 <= key < array.shape[0]


def _is_in(key: Any, keys: Collection[Any]) -> bool:
    try:
        return key in keys and not isinstance(key, bool)
    except TypeError:
        return False


def _hashable_in(key: Any, keys: Collection[Any]) -> bool:
    try:
        return key in keys
    except TypeError:
        return False


def _joined(path: str, key: Any, *, dotted: bool = False) -> str:
    return f"{path}.{key}" if dotted else f"{path}[{key!r}]"
