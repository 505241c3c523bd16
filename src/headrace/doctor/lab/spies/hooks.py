"""Calls a function when a module has been imported, at once if it has been already."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

__all__ = ["when_imported"]

Call = Callable[[ModuleType], None]


def when_imported(name: str, call: Call) -> None:
    """Calls `call(module)` after the module's own code has run and before the importer sees it."""
    module = sys.modules.get(name)
    if module is not None:
        _tell(call, module)
        return
    finder = next((one for one in sys.meta_path if isinstance(one, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.calls.setdefault(name, []).append(call)


def _tell(call: Call, module: ModuleType) -> None:
    """A library of another version that lacks what is looked for is used without its spy: that must not break it."""
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        call(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as the others find them; wraps the loader of those that are waited for."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Call]] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answers for the modules that are waited for; None for all others."""
        if fullname not in self.calls:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self.calls[fullname])
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """The loader of one module, then the calls. Everything else is the loader's own."""

    def __init__(self, loader: importlib.abc.Loader, calls: list[Call]) -> None:
        self._loader = loader
        self._calls = calls

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As the loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the loader does; then the spies are told."""
        self._loader.exec_module(module)
        # A package may put another module in its own place while it runs.
        current = sys.modules.get(module.__name__, module)
        for call in self._calls:
            _tell(call, current)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)
