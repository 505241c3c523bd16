"""Walks through what an object holds, and names each thing by the path on which it is reached.

`dataset.transform.transforms[1].rng` · `collate_fn.keywords['rng']` · `dataset.crop.closure.rng` · `sensors.RNG`

Goes through attributes, slots, lists, dicts, partials, bound methods, closures, defaults, the attributes of the user's
own classes, and the module variables that the user's own functions use. Runs none of the user's code: properties,
`__getattr__` and `__iter__` are not asked. Arrays, tensors, texts and numbers have no inside.
"""

from __future__ import annotations

import collections
import functools
import itertools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headrace.doctor.lab.spies import without_spy
from headrace.doctor.stacks import is_doctors, is_user_code

__all__ = ["walk"]

MAX_DEPTH = 10
"""Steps from the root; wrappers of wrappers of transforms take five or six."""
MAX_ITEMS = 20_000
"""Things looked at: some hundredths of a second."""
MAX_ELEMENTS = 64
"""Elements of one container that are looked at: its first ones; a list of a million samples holds more of the same."""
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), range, slice)
_OPAQUE = {"numpy.ndarray", "torch.Tensor", "pandas.DataFrame", "pandas.Series"}
_SKIPPED_MODULES = ("torch.nn.parameter", "logging", "threading", "concurrent.futures")

Step = tuple[str, Any]
"""(how the path goes on, what is there)."""


def walk(
    root: Any, name: str = "dataset", *, max_depth: int = MAX_DEPTH, max_items: int = MAX_ITEMS
) -> Iterator[tuple[str, Any]]:
    """Yields (path, value) for the root and everything that it holds, each object once, near ones first.

    Args:
        root: Where to begin.
        name: What the path begins with.
        max_depth: Steps from the root.
        max_items: Objects looked at; the walk ends quietly there.
    """
    pending: collections.deque[tuple[str, Any, int]] = collections.deque([(name, root, 0)])
    # The objects are kept too: a temporary one could make room for another under the same id.
    seen: dict[int, Any] = {}
    while pending and len(seen) < max_items:
        path, wrapped, depth = pending.popleft()
        value = without_spy(wrapped)
        if isinstance(value, _PLAIN) or id(value) in seen or not _says_its_class(value) or is_doctors(value):
            continue
        seen[id(value)] = value
        yield path, value
        if depth < max_depth:
            pending.extend((_joined(path, step), held, depth + 1) for step, held in _inside(value))


def _says_its_class(value: Any) -> bool:
    """False for an object that answers no question about itself, such as the `f` of numpy's NpzFile."""
    try:
        value.__class__  # noqa: B018 - what isinstance asks
    except Exception:
        return False
    return True


def _joined(path: str, step: str) -> str:
    """The path one step on. A module variable is named by its module, however it was reached."""
    return path + step if step.startswith((".", "[")) else step


def _inside(value: Any) -> Iterator[Step]:
    """What one object holds."""
    kind = type(value)
    if isinstance(value, types.ModuleType) or _is_opaque(kind):
        return
    if isinstance(value, type):
        yield from _of_class(value)
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
        if isinstance(value.__func__, types.FunctionType):
            yield from _of_function(value.__func__)
    elif isinstance(value, functools.partial):
        yield ".func", value.func
        yield from ((f".args[{place}]", held) for place, held in enumerate(value.args))
        yield from ((f".keywords[{key!r}]", held) for key, held in value.keywords.items())
    elif isinstance(value, Mapping):
        if isinstance(value, dict):
            first = list(itertools.islice(dict.items(value), MAX_ELEMENTS))
            yield from ((f"[{key!r}]", held) for key, held in first if isinstance(key, (str, int)))
        yield from _of_instance(value)
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        elements: Iterable[Any] = itertools.islice(kind.__iter__(value), MAX_ELEMENTS)
        yield from ((f"[{place}]", held) for place, held in enumerate(list(elements)))
        yield from _of_instance(value)
    else:
        yield from _of_instance(value)


def _of_instance(value: Any) -> Iterator[Step]:
    kind = type(value)
    held = _own_dict(value)
    yield from ((f".{name}", one) for name, one in list(held.items()) if isinstance(name, str))
    for parent in kind.__mro__:
        slots = parent.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            member = parent.__dict__.get(slot)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    yield f".{slot}", member.__get__(value, kind)
                except AttributeError:  # not set yet
                    continue
    for parent in kind.__mro__:
        if _is_users(parent):
            yield from ((step, one) for step, one in _of_class(parent) if step.removeprefix(".") not in held)


def _own_dict(value: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_class(kind: type) -> Iterator[Step]:
    """Attributes that the user's class gives to all its instances, and what its methods use."""
    if not _is_users(kind):
        return
    for name, held in list(vars(kind).items()):
        function = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
        if isinstance(function, property):
            function = function.fget
        if isinstance(function, types.FunctionType):
            yield from _of_function(function)
        elif not (name.startswith("__") or isinstance(held, types.MemberDescriptorType)):
            yield f".{name}", held


def _of_function(function: types.FunctionType) -> Iterator[Step]:
    """Closure and defaults; of the user's own functions also the module variables that they use."""
    yield from ((f".{name}", held) for name, held in list(vars(function).items()))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f".closure.{name}", cell.cell_contents
        except ValueError:  # empty yet
            continue
    yield from ((f".defaults[{place}]", held) for place, held in enumerate(function.__defaults__ or ()))
    yield from ((f".defaults[{key!r}]", held) for key, held in (function.__kwdefaults__ or {}).items())
    if not is_user_code(function.__code__.co_filename):
        return
    module = function.__globals__.get("__name__", "module")
    for name in _names(function.__code__):
        held = function.__globals__.get(name)
        if not isinstance(held, (types.ModuleType, types.BuiltinFunctionType)):
            yield f"{module}.{name}", held


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that a function, or one that is written inside it, looks up outside itself."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_opaque(kind: type) -> bool:
    return any(
        f"{parent.__module__}.{parent.__qualname__}" in _OPAQUE or parent.__module__.startswith(_SKIPPED_MODULES)
        for parent in kind.__mro__
    )


@functools.lru_cache(maxsize=4096)
def _is_users(kind: type) -> bool:
    """True for a class that the user wrote."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and is_user_code(file)
