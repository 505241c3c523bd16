"""Listens to calls of a library's functions: one wrapper for each function, however many observers listen.

The function gets the same arguments and its caller the same result. What a listener raises is dropped.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

__all__ = ["listen", "quietly"]

Before = Callable[[tuple[Any, ...], dict[str, Any]], None]
"""Takes the arguments of a call that begins."""
After = Callable[[tuple[Any, ...], dict[str, Any], Any], None]
"""Takes the arguments and the result of a call that returned."""
Ended = Callable[[], None]
"""Told that a call has ended, also by an exception."""

_taps: dict[tuple[int, str], _Tap] = {}
"""The functions that are listened to: there is one of each in a process."""


class _Tap:
    """One function of a class or module, and who listens."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.before: list[Before] = []
        self.after: list[After] = []
        self.ended: list[Ended] = []
        self._is_own = name in vars(owner)
        self._original = getattr(owner, name)
        self._wrapper = self._wrapped(self._original)
        setattr(owner, name, self._wrapper)

    def is_idle(self) -> bool:
        return not (self.before or self.after or self.ended)

    def remove(self) -> None:
        if vars(self.owner).get(self.name) is not self._wrapper:
            return  # someone else has wrapped it since: an idle wrapper is left below theirs
        if self._is_own:
            setattr(self.owner, self.name, self._original)
        else:
            delattr(self.owner, self.name)

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        before, after, ended, is_compiling = self.before, self.after, self.ended, torch.compiler.is_compiling

        @functools.wraps(original)
        def tapped(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():  # a compiler that traces the user's code must find that code alone
                return original(*args, **kwargs)
            _tell(before, args, kwargs)
            try:
                result = original(*args, **kwargs)
                if after:
                    _tell(after, args, kwargs, result)
            finally:
                for leave in ended:
                    leave()
            return result

        return tapped


def _tell(listeners: list[Any], *what: Any) -> None:
    for listener in listeners:
        try:
            listener(*what)
        except Exception:  # noqa: S112 - the user's training goes on, whatever the observer meets
            continue


def listen(
    owner: Any, name: str, *, before: Before | None = None, after: After | None = None, ended: Ended | None = None
) -> Callable[[], None]:
    """Begins to listen to `owner.name`, a method of a class or a function of a module; returns what ends it.

    A class that inherits the method gets one of its own: only calls on it and its subclasses are heard.
    """
    key = (id(owner), name)
    tap = _taps.get(key)
    if tap is None:
        tap = _taps[key] = _Tap(owner, name)
    listeners: list[tuple[list[Any], Any]] = [
        (where, what)
        for where, what in ((tap.before, before), (tap.after, after), (tap.ended, ended))
        if what is not None
    ]
    for where, what in listeners:
        where.append(what)

    def stop() -> None:
        for where, what in listeners:
            if what in where:
                where.remove(what)
        if tap.is_idle() and _taps.get(key) is tap:
            tap.remove()
            del _taps[key]

    return stop


def quietly(hook: Callable[..., None]) -> Callable[..., None]:
    """Returns a hook for torch's own lists of hooks that never raises into the user's code."""

    def quiet(*args: Any) -> None:
        with contextlib.suppress(Exception):
            hook(*args)

    return quiet
