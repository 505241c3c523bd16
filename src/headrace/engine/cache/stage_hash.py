"""What a function does, as a digest: its code, its constants, the values it holds and the functions it calls.

Two functions with the same digest do the same; the reverse does not hold, and need not: a needless difference costs a
cache that is filled again. Installed libraries count by name and version, the user's own modules by their code. What
has no such description (a lock, an open file, an object of an unknown C class) is refused.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from headrace.engine.transform.stage import Stage

__all__ = ["Unhashable", "stages_digest"]

_PLAIN = (int, float, complex, str, bytes, bytearray, bool, type(None), type(...), range, slice, np.dtype, PurePath)
_FLAGS = 0x0F | 0x20 | 0x80 | 0x100  # arguments, nesting, generator and coroutine; not where the code was compiled
_GLOBAL_READS = {"LOAD_GLOBAL", "LOAD_NAME"}


class Unhashable(ValueError):
    """A value that a stage holds has no description; the message names its place and its type."""


def stages_digest(stages: tuple[Stage, ...]) -> str:
    """Returns a digest of everything that decides what these stages make of a record.

    Raises:
        Unhashable: the place and the type of what cannot be described.
    """
    walk = _Walk()
    walk.text(f"python {sys.version_info[:2]}")
    for stage in stages:
        walk.value(stage.function, stage.name)
    return walk.digest.hexdigest()


class _Walk:
    """Feeds one digest with values, depth first; what comes again counts as the number of its first visit."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=16, person=b"headrace-stage-1")
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # an id stands for its object only while that object lives

    def text(self, *parts: str) -> None:
        for part in parts:
            data = part.encode(errors="surrogatepass")
            self.digest.update(len(data).to_bytes(8, "little") + data)

    def value(self, value: Any, path: str) -> None:
        """Feeds one value, whatever it is."""
        if isinstance(value, enum.Enum):
            self.text("enum", _name(type(value)), value.name)
        elif isinstance(value, np.generic):
            self.text("scalar", str(value.dtype), repr(value))
        elif type(value) in _PLAIN or isinstance(value, (np.dtype, PurePath)):
            self.text(_name(type(value)), repr(value))
        elif type(value) in {tuple, frozenset}:  # constants: whether equal ones are one object is up to the compiler
            self._collection(value, path)
        elif id(value) in self._seen:
            self.text("again", str(self._seen[id(value)]))
        else:
            self._seen[id(value)] = len(self._seen)
            self._alive.append(value)
            self._compound(value, path)

    def _compound(self, value: Any, path: str) -> None:
        if isinstance(value, types.ModuleType):
            self.text("module", value.__name__, _version(value.__name__) or "")
        elif isinstance(value, type) and _is_installed(value):
            self.text("installed", _name(value), _version(value.__module__) or "")
        elif isinstance(value, types.BuiltinFunctionType):
            self.text("builtin", _name(value), _version(value.__module__ or "builtins") or "")
            if not isinstance(value.__self__, (types.ModuleType, type(None))):
                self.value(value.__self__, f"{path}.__self__")
        elif isinstance(value, types.FunctionType):
            self._function(value, path)
        elif isinstance(value, types.MethodType):
            self.text("method")
            self.value(value.__func__, path)
            self.value(value.__self__, f"{path}.__self__")
        elif isinstance(value, functools.partial):
            self.text("partial")
            for name in ("func", "args", "keywords"):
                self.value(getattr(value, name), f"{path}.{name}")
        elif isinstance(value, type):
            self._class(value, path)
        elif isinstance(value, (staticmethod, classmethod)):
            self.text(type(value).__name__)
            self.value(value.__func__, path)
        elif isinstance(value, property):
            for accessor in (value.fget, value.fset):
                self.value(accessor, path)
        elif type(value) in {list, dict, set} or isinstance(value, types.MappingProxyType):
            self._collection(value, path)
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise Unhashable(f"{path} is an array of Python objects")
            self.text("array", str(value.dtype), str(value.shape))
            self.digest.update(np.ascontiguousarray(value).tobytes())
        else:
            self._object(value, path)

    def _collection(self, value: Any, path: str) -> None:
        self.text(type(value).__name__, str(len(value)))
        if isinstance(value, (set, frozenset)):
            try:
                value = sorted(value, key=repr)  # the order of a set changes from run to run
            except TypeError as error:
                raise Unhashable(f"{path} is a set that cannot be sorted") from error
        pairs = value.items() if hasattr(value, "items") else enumerate(value)
        for key, part in pairs:
            self.value(key, f"{path}[...]")
            self.value(part, f"{path}[{key!r}]")

    def _function(self, function: types.FunctionType, path: str) -> None:
        self.text("function", function.__qualname__)
        home = sys.modules.get(function.__module__ or "")
        is_installed = home is not None and function.__globals__ is vars(home) and _is_installed(function)
        self.value(function.__defaults__, f"{path}: default")
        self.value(function.__kwdefaults__, f"{path}: default")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            try:
                held = cell.cell_contents
            except ValueError:  # not yet filled
                self.text("empty", name)
                continue
            self.value(held, f"{path}: {name}")
        if is_installed:
            self.text("installed", _name(function), _version(function.__module__) or "")
            return
        self._code(function.__code__, function.__globals__, path)
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self.value(wrapped, path)

    def _code(self, code: types.CodeType, names: dict[str, Any], path: str) -> None:
        self.text(str(code.co_flags & _FLAGS), str((code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)))
        self.digest.update(code.co_code + b"|" + getattr(code, "co_exceptiontable", b""))
        self.text(*code.co_names, "|", *code.co_varnames, "|", *code.co_freevars, *code.co_cellvars)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):  # a nested function, lambda or comprehension
                self._code(constant, names, path)
            else:
                self.value(constant, path)
        steps = list(dis.get_instructions(code))
        for name in sorted({step.argval for step in steps if step.opname in _GLOBAL_READS}):
            if name in names:
                self._named(names[name], code.co_names, f"{path}: {name}")
            elif not hasattr(builtins, name):
                self.text("no global", name)
        for name in sorted({step.argval for step in steps if step.opname == "IMPORT_NAME"}):
            self._imported(name, names.get("__package__"), code.co_names, f"{path}: {name}")

    def _imported(self, name: str, package: str | None, attributes: tuple[str, ...], path: str) -> None:
        """Feeds a module that the code imports when it runs."""
        version = _version(name) if name else None
        if version is not None:
            self.text("module", name, version)
            return
        for absolute, home in ((name, None), ("." + name, package)):
            try:
                self._named(importlib.import_module(absolute, home), attributes, path)
            except (ImportError, TypeError, ValueError):  # not there, or not relative to anything
                continue
            return
        self.text("no module", name)

    def _named(self, value: Any, attributes: tuple[str, ...], path: str) -> None:
        """Feeds a global; of a module of the user's own also what the code may take from it."""
        self.value(value, path)
        if isinstance(value, types.ModuleType) and _version(value.__name__) is None:
            for name in attributes:
                if name in vars(value):
                    self._named(vars(value)[name], attributes, f"{path}.{name}")

    def _class(self, kind: type, path: str) -> None:
        self.text("class", _name(kind))
        for base in kind.__bases__:
            self.value(base, f"{path}: base {base.__name__}")
        for name, part in sorted(vars(kind).items()):
            if name in {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate_func__"}:
                continue
            if name in {"__abstractmethods__", "_abc_impl", "__firstlineno__", "__static_attributes__"}:
                continue
            if isinstance(part, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                self.text("slot", name)
                continue
            self.text(name)
            self.value(part, f"{path}.{name}")

    def _object(self, value: Any, path: str) -> None:
        """Feeds class and state of an object; refuses one whose state Python does not show."""
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            self.text("tensor", str(value.dtype))
            self.value(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy(), path)
            self.text(str(tuple(value.shape)))
            return
        if torch is not None and isinstance(value, (torch.dtype, torch.device)):
            self.text("torch", repr(value))
            return
        try:
            reduced = value.__reduce_ex__(2)  # what pickle would store: all that makes the object what it is
        except Exception as error:
            raise Unhashable(f"{path} is of class {_name(type(value))}, whose state cannot be seen") from error
        self.text("object")
        self.value(type(value), path)
        for part in (reduced,) if isinstance(reduced, str) else reduced:
            is_iterator = isinstance(part, Iterator)
            self.value(list(part) if is_iterator else part, path)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


def _is_installed(value: Any) -> bool:
    return _version(getattr(value, "__module__", None) or "builtins") is not None


@functools.cache
def _version(module_name: str) -> str | None:
    """Version of the library that a module belongs to; None for code of the user's own, which can change at any time."""
    top = module_name.partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return sys.version
    file = getattr(sys.modules.get(top), "__file__", None)
    if top not in sys.modules:
        spec = importlib.util.find_spec(top)
        file = None if spec is None else spec.origin
    homes = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    # An environment may see the libraries of another one: --system-site-packages, a .pth file, a user's own.
    homes += [Path(entry) for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    if file is None or not any(Path(file).is_relative_to(home) for home in homes):
        return None
    for distribution in _distributions().get(top, ()):
        return importlib.metadata.version(distribution)
    return getattr(sys.modules.get(top), "__version__", None) or f"installed {Path(file).stat().st_mtime_ns}"


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())
