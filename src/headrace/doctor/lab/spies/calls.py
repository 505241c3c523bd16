"""Puts a spy around a library's function: a stage while it runs, what it refused, what it read."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from headrace.doctor.lab.bench import Bench

__all__ = ["StandIn", "argument", "replace", "spied_reader", "stand_in", "text_path", "undisturbed"]

_MARK = "_headrace_spy"

StandIn = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Takes a decoder, its arguments and its options, and gives what the decoder would have given."""

_stand_in: StandIn | None = None


def stand_in(function: StandIn | None) -> StandIn | None:
    """Puts a function in the place of every decoder while no sample is in hand; returns the one before. None: nothing."""
    global _stand_in
    before, _stand_in = _stand_in, function
    return before


def undisturbed(original: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Calls a decoder that no bench listens to, or what stands in its place."""
    return original(*arguments, **options) if _stand_in is None else _stand_in(original, arguments, options)


def replace(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Puts `make(original)` in the place of an attribute, once; one that is not there is left alone."""
    original = getattr(owner, name, None)
    if not callable(original) or hasattr(original, _MARK):
        return
    wrapped = make(original)
    setattr(wrapped, _MARK, True)
    setattr(owner, name, wrapped)


def spied_reader(
    bench: Bench,
    function: Callable[..., Any],
    *,
    place: int = 0,
    keyword: str = "",
    note: Callable[[Any, str | None, tuple[Any, ...], dict[str, Any]], None] | None = None,
    is_open: bool = False,
) -> Callable[..., Any]:
    """Returns a reader of files that tells the bench what it does.

    Args:
        bench: Who is told.
        function: Reads a file, or part of one.
        place: Position of the argument that names the file.
        keyword: Its name.
        note: Told (result, path, arguments, options) of what was read.
        is_open: True if the function opens files without Python, so that nobody else hears of it.
    """

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if not bench.is_listening:
            return undisturbed(function, *arguments, **options)
        path = text_path(argument(arguments, options, place, keyword))
        if is_open and path is not None:
            bench.note_opened(path)
        with bench.inside("decode"):
            try:
                result = function(*arguments, **options)
            except Exception as error:
                bench.seen.note_refusal(path or bench.seen.in_hand, error)
                raise
            path = path or bench.seen.in_hand
            if note is not None:
                note(result, path, arguments, options)
            elif result is not None:
                bench.seen.note_read(path)
        return result

    return wrapped


def argument(arguments: tuple[Any, ...], options: dict[str, Any], place: int, keyword: str, default: Any = None) -> Any:
    """Returns an argument that may be given by place or by name."""
    return arguments[place] if len(arguments) > place else options.get(keyword, default)


def text_path(source: Any) -> str | None:
    """Returns the absolute path that a source names; None for bytes, arrays and files without a name."""
    if not isinstance(source, (str, os.PathLike)):
        source = getattr(source, "name", None)
    # At once: the current folder may change.
    return os.path.abspath(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else None  # noqa: PTH100
