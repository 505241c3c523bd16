"""Progress on stderr: a spinner or a bar on a terminal, a line every 30 seconds elsewhere.

stdout is left to results, so that `headrace ... > report.txt` holds the report and nothing else.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar

__all__ = ["Heartbeat", "bar", "spinner"]

ItemT = TypeVar("ItemT")

LINE_EVERY_S = 30.0
"""Seldom enough for a log that people read, often enough to see that it lives. The house's rule for all commands."""


class Heartbeat:
    """Writes at most one line in `LINE_EVERY_S` seconds, with the time since the start."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._start = self._last = clock()

    def __call__(self, message: str) -> None:
        """Writes the message if the last line is old enough."""
        now = self._clock()
        if now - self._last >= LINE_EVERY_S:
            self._last = now
            self._stream.write(f"headrace: {now - self._start:.0f} s: {message}\n")
            self._stream.flush()


@contextlib.contextmanager
def spinner(start: str, stream: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Shows what is being done while the block runs; the block calls the yielded function with each new message."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        yield Heartbeat(stream)
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(file=stream).status(escape(start)) as status:
        yield lambda message: status.update(escape(message))


def bar(
    items: Iterable[ItemT],
    message: str,
    total: int,
    *,
    stream: TextIO | None = None,
) -> Iterator[ItemT]:
    """Yields the items, and shows how many of `total` are done."""
    stream = sys.stderr if stream is None else stream
    if not stream.isatty():
        heartbeat = Heartbeat(stream)
        for done, item in enumerate(items):
            heartbeat(f"{message}: {done:,} of {total:,}")
            yield item
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=message, total=total, console=Console(file=stream), transient=True)
