"""Tells when a library has been imported, without importing it and without staying in the way afterwards."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["when_imported"]


_executed: set[str] = set()
"""Modules whose code has run; Python says so of them a moment later."""


def when_imported(name: str, then: Callable[[], None]) -> Callable[[], None]:
    """Calls `then` once the module has been imported: now, if it is there already. Returns what ends the waiting."""
    if name in _executed or (name in sys.modules and not getattr(sys.modules[name].__spec__, "_initializing", False)):
        then()
        return lambda: None
    finder = _Finder(name, then)
    sys.meta_path.insert(0, finder)
    return finder.end


class _Finder:
    """Lets the ordinary finders find the module, and listens to the end of its import."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def end(self) -> None:
        """Waits no more."""
        self._then = lambda: None
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system's words
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Answers for one name, once; None for every other."""
        if name != self._name:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader = None if spec is None else spec.loader
        if spec is None or loader is None:  # not installed: the next attempt may find it
            sys.meta_path.insert(0, self)
            return None
        execute = loader.exec_module

        def execute_and_tell(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            _executed.add(name)
            self._then()

        try:
            loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        except AttributeError:  # a loader that cannot be changed: this library is not seen
            return None
        return spec
