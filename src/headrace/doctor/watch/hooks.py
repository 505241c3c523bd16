"""Hooks into other people's classes that leave no trace in a traceback.

A wrapper written in Python would appear as a frame in every exception that passes through it: in the traceback of the
user's own data set. So a look before a method happens where Python looks the method up, and a look after it in a chain
of built-in iterators; the method itself runs with nobody in between.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["Hooks"]

Look = Callable[[Any], object]
"""Told the object; must not raise, must not keep it."""


class Hooks:
    """The hooks of one observer: set one by one, taken away together."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def before(self, owner: type, name: str, look: Look) -> None:
        """Calls `look(self)` whenever the method `name` of an instance is about to be called."""
        self.replace(owner, name, _Before(owner.__dict__[name], look))

    def after(self, owner: type, name: str, look: Callable[[Any, Any], Any]) -> None:
        """Calls `look(self, result)` after each call of a method without arguments; its answer becomes the result."""
        self.replace(owner, name, _After(owner.__dict__[name], look))

    def attribute(
        self, owner: type, name: str, *, read: Look | None = None, written: Callable[[Any, Any], None] | None = None
    ) -> None:
        """Calls `read(self)` before an instance's attribute is read, and `written(self, value)` before it is set.

        The value stays where it was, in the instance's own dictionary.
        """
        self.replace(owner, name, _Attribute(name, read, written))

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Puts a value in the place of an attribute until `remove`."""
        before = vars(owner).get(name, _ABSENT)

        def undo() -> None:
            if vars(owner).get(name) is not value:  # somebody else has hooked in after us: theirs holds ours
                return
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        setattr(owner, name, value)
        self._undo.append(undo)

    def remove(self) -> None:
        """Takes all hooks away, the newest first."""
        while self._undo:
            self._undo.pop()()


_ABSENT = object()


class _Method:
    """Stands in a class for a function of it, and answers like it where it is asked for its name or signature."""

    def __init__(self, function: Any, look: Callable[..., Any]) -> None:
        self._look = look
        self.__wrapped__ = function
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # not yet there, e.g. while it is copied
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)


class _Before(_Method):
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.__wrapped__
        self._look(instance)
        return self.__wrapped__.__get__(instance, owner)


class _After(_Method):
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.__wrapped__
        method = self.__wrapped__.__get__(instance, owner)
        # starmap calls the method, map calls the look: both are built in, so neither is a frame. A StopIteration of
        # the method ends them, which is a StopIteration again.
        return map(functools.partial(self._look, instance), itertools.starmap(method, itertools.repeat(()))).__next__


class _Attribute:
    def __init__(self, name: str, read: Look | None, written: Callable[[Any, Any], None] | None) -> None:
        self._name, self._read, self._written = name, read, written

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self._read is not None:
            self._read(instance)
        try:
            return instance.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None

    def __set__(self, instance: Any, value: Any) -> None:
        if self._written is not None:
            self._written(instance, value)
        instance.__dict__[self._name] = value

    def __delete__(self, instance: Any) -> None:
        with contextlib.suppress(KeyError):
            del instance.__dict__[self._name]
