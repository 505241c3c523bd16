"""Progress on stderr: a spinner or a bar on a terminal, a line every 30 seconds elsewhere.

stdout is left to results, so that `headrace ... > report.txt` holds the report and nothing else.
"""

from __future__ import annotations

import contextlib
import sys
import threading
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


class Task:
    """What is being done now, and how much of the time for it is used; the message can be read at any moment."""

    def __init__(self, message: str, budget_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._message = message
        self._budget_s = budget_s
        self._clock = clock
        self._start = clock()

    def __call__(self, message: str) -> None:
        """Goes on to something else."""
        self._message = message

    def __str__(self) -> str:
        if self._budget_s is None:
            return self._message
        used = min(1.0, (self._clock() - self._start) / self._budget_s)
        return f"{self._message} ({used:.0%} of {self._budget_s:g} s used)"


@contextlib.contextmanager
def spinner(
    start: str, stream: TextIO | None = None, *, budget_s: float | None = None
) -> Iterator[Callable[[str], None]]:
    """Shows what is being done while the block runs; the block calls the yielded function with each new message.

    Args:
        start: What is being done first.
        stream: Where to show it. Default: stderr.
        budget_s: Seconds that all of it may take; shown with the share that is used.

    It goes on by itself: an experiment that says nothing for minutes is seen to run all the same.
    """
    stream = sys.stderr if stream is None else stream
    task = Task(start, budget_s)
    if not stream.isatty():
        with _lines(Heartbeat(stream), task):
            yield task
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    wheel = Spinner("dots")

    def shown() -> Spinner:
        wheel.update(text=Text(str(task), overflow="ellipsis", no_wrap=True))
        return wheel

    with Live(get_renderable=shown, console=Console(file=stream), transient=True, refresh_per_second=8) as live:
        yield task
        live.refresh()


@contextlib.contextmanager
def _lines(beat: Heartbeat, task: Task) -> Iterator[None]:
    """Says once in a while what the task is, from a thread of its own, until the block ends."""
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.wait(LINE_EVERY_S):
            beat(str(task))

    thread = threading.Thread(target=go_on, name="headrace-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


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
