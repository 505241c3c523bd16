"""Tells whether two loaders, one made after the other, are over the same data, without keeping either alive.

    the same object                    the same data, unless a word in it has changed: `dataset.set_split("val")`
    another object of the same class   the same data if what it holds looks the same: its words, its numbers, and up to
                                       some hundred entries, spread over each list and array

So the folds of a cross-validation are different (their rows differ), and a data set that is opened anew for each epoch
is the same. A look takes about a millisecond, once for each loader, and calls nothing of the user's: classes are asked
and not objects, for these may answer by opening a file.
"""

from __future__ import annotations

import dataclasses
import pathlib
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["Likeness", "likeness_of"]

SPREAD = 512
"""Numbers of one list or array that are compared, as rows under a Subset are: all of a short one."""
SPREAD_OTHER = 64
"""Entries of a list of anything else, which take longer to look at."""
MOST_PARTS = 24
MOST_ATTRIBUTES = 64
LONGEST_WORD = 200
"""Of longer text only its ends are kept: it may be the data."""
_WORDS = (str, pathlib.PurePath)
_PLAIN = (*_WORDS, bytes, float)
_EXACT = (bool, int, str, bytes, type(None))


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """A data set or sampler of the loader, or one inside it."""

    kind: type
    reference: weakref.ref[Any] | None
    words: tuple[tuple[str, object], ...]
    """Its attributes that are text or paths: which file, which split."""
    digest: int

    def is_like(self, other: _Part) -> bool:
        if self.kind is not other.kind or self.words != other.words:
            return False
        mine = None if self.reference is None else self.reference()
        is_same = mine is not None and other.reference is not None and other.reference() is mine
        return is_same or self.digest == other.digest


@dataclasses.dataclass(frozen=True, slots=True)
class Likeness:
    """What a loader is over, at the beginning of its first walk. Holds a few numbers and weak references."""

    parts: tuple[_Part, ...]

    def is_like(self, other: Likeness) -> bool:
        """True if both are over the same data, drawn by the same kind of sampler from the same rows."""
        return len(self.parts) == len(other.parts) and all(
            mine.is_like(others) for mine, others in zip(self.parts, other.parts, strict=True)
        )


def likeness_of(*sources: Any) -> Likeness:
    """Returns the likeness of a loader by its data set and samplers; None among them counts for nothing."""
    found: list[_Part] = []
    waiting, seen = [source for source in sources if source is not None], set()
    while waiting and len(found) < MOST_PARTS:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        attributes = _attributes(value)
        inner = {name: list(_inside(held)) for name, held in attributes}
        waiting += [part for parts in inner.values() for part in parts]
        own = [(name, held) for name, held in attributes if not inner[name]]
        words = tuple((name, _content(held)) for name, held in own if issubclass(type(held), _WORDS))
        rest = [(name, _content(held)) for name, held in own if not issubclass(type(held), _WORDS)]
        found.append(_Part(type(value), _reference(value), words, hash((_content(value), *rest))))
    return Likeness(tuple(found))


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """Without those that count epochs: they are what differs from one epoch to the next."""
    held = _held(value) or {}
    pairs = list(held.items())[:MOST_ATTRIBUTES]
    return [(name, one) for name, one in pairs if "epoch" not in name.lower()]


def _held(value: Any) -> dict[str, Any] | None:
    try:
        return object.__getattribute__(value, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return None


def _reference(value: Any) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(value)
    except TypeError:  # a plain list: what it holds has to tell
        return None


def _inside(value: Any) -> Iterator[Any]:
    """The data sets and samplers that an attribute holds."""
    if type(value) in (list, tuple):
        if value and _is_part(value[0]):
            yield from (one for one in value[:MOST_PARTS] if _is_part(one))
    elif _is_part(value):
        yield value


def _is_part(value: Any) -> bool:
    from torch.utils.data import Sampler

    kind = type(value)
    if issubclass(kind, Sampler):
        return True
    is_read_by_row = hasattr(kind, "__getitem__") and _held(value) is not None
    return is_read_by_row and not hasattr(kind, "__array__") and not issubclass(kind, (list, tuple, dict))


def _content(value: Any) -> object:
    """Something small that can be hashed and is equal for equal values; of what is not known, its class."""
    try:
        return _looked_at(value)
    except Exception:  # a tensor that is only a promise, a frame of an odd shape
        return type(value).__qualname__


def _looked_at(value: Any) -> object:
    kind = type(value)
    if issubclass(kind, (str, bytes, pathlib.PurePath)):
        text = str(value) if issubclass(kind, pathlib.PurePath) else value
        is_short = len(text) <= LONGEST_WORD
        return kind.__name__, text if is_short else (len(text), text[: LONGEST_WORD // 2], text[-LONGEST_WORD // 2 :])
    if kind in _EXACT:
        return kind.__name__, value
    if kind is float:
        return kind.__name__, repr(value)  # a NaN is like itself
    if kind in (list, tuple, range):
        if value and type(value[0]) is int:  # rows, most likely
            entries = [value[row] for row in _spread(len(value), SPREAD)]
            if set(map(type, entries)) == {int}:
                return kind.__name__, len(value), tuple(entries)
        return kind.__name__, len(value), tuple(_entry(value[row]) for row in _spread(len(value), SPREAD_OTHER))
    if kind is dict:
        return kind.__name__, len(value), tuple(_entry(key) for key, _ in zip(value, range(8), strict=False))
    if issubclass(kind, np.ndarray):
        return _array(value)
    if hasattr(kind, "detach") and hasattr(kind, "device"):
        return _array(value.detach().numpy()) if value.device.type == "cpu" else (str(value.dtype), tuple(value.shape))
    if kind.__module__.partition(".")[0] == "pandas" and hasattr(kind, "iloc"):
        return kind.__name__, value.shape, _array(value.iloc[_spread(len(value), 16)].to_numpy())
    return kind.__qualname__


def _array(value: np.ndarray[Any, Any]) -> object:
    if isinstance(value, np.memmap):  # not read: it may lie on a slow disk
        return value.dtype.str, value.shape, str(value.filename), value.offset
    rows = np.asarray(_spread(value.size, SPREAD_OTHER if value.dtype.hasobject else SPREAD), dtype=np.intp)
    entries = value.flat[rows] if value.size else value
    shown: object = tuple(map(_entry, entries.tolist())) if entries.dtype.hasobject else entries.tobytes()
    return value.dtype.str, value.shape, shown


def _entry(value: Any) -> object:
    """An entry of a list: plain values and arrays as they are, of all others the class."""
    kind = type(value)
    if issubclass(kind, (*_PLAIN, np.ndarray)) or kind in _EXACT or hasattr(kind, "detach"):
        return _content(value)
    if kind is tuple and len(value) <= 8:
        return tuple(map(_entry, value))
    return value.item() if issubclass(kind, np.generic) else kind.__qualname__


def _spread(length: int, most: int) -> Sequence[int]:
    """Rows from the first to the last, evenly: all if there are few."""
    if length <= most:
        return range(length)
    return [row * (length - 1) // (most - 1) for row in range(most)]
