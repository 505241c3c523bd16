"""Tells from outside where the time of a sample goes: what is read, decoded and transformed, in one thread.

    begin ──▶ first ──file opened──▶ read ──decoder──▶ decode ──▶ after ──▶ end
                                                 transform ──▶ after

`first` is what happens before anything is heard, `after` what follows a decoder or a transform. What is heard only
afterwards decides what `first` was: reading, if a file was opened or a decoder worked. `after` is work on what was decoded
or transformed, so it counts as transform. A sample in which nothing was heard is not told apart.

What the data set does in other threads is heard as waiting.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from headrace.doctor.timing.timed import Stage

__all__ = [
    "COLLATE",
    "DECODE",
    "NUM_STAGES",
    "READ",
    "SAMPLE",
    "STAGES",
    "TRANSFORM",
    "StageClock",
    "listen_to_opening",
]

STAGES: tuple[Stage, ...] = ("read", "decode", "transform", "sample", "collate")
READ, DECODE, TRANSFORM, SAMPLE, COLLATE = range(len(STAGES))
NUM_STAGES = len(STAGES)
_FIRST, _AFTER = SAMPLE, COLLATE
"""While a sample is prepared, the places of the last two stages are used for these."""


class StageClock:
    """Seconds of one batch, wall and CPU. A switch between stages costs about a microsecond."""

    def __init__(self) -> None:
        self.walls_s = [0.0] * NUM_STAGES
        """By stage, of the batch in hand."""
        self.cpus_s = [0.0] * NUM_STAGES
        self.slowest_s = -1.0
        self.is_in_sample = False
        self.begins_with: int = SAMPLE
        """What is done before anything is heard, and what a sample is in which nothing is: reading, where the data set says
        that it only reads."""
        self._at = _FIRST
        self._depth = 0
        self._hears_files = self._hears_decoder = self._hears_transform = False
        self._since = self._cpu_since = 0.0
        self._walls = [0.0] * NUM_STAGES
        self._cpus = [0.0] * NUM_STAGES
        self._thread = 0

    def clear(self) -> None:
        """A batch begins."""
        self.walls_s = [0.0] * NUM_STAGES
        self.cpus_s = [0.0] * NUM_STAGES
        self.slowest_s = -1.0

    # What is heard.

    def begin(self) -> None:
        """A sample begins."""
        self._thread = threading.get_ident()
        self._hears_files = self._hears_decoder = self._hears_transform = False
        self._at = _FIRST
        self._walls, self._cpus = [0.0] * NUM_STAGES, [0.0] * NUM_STAGES
        self._cpu_since, self._since = time.thread_time(), time.monotonic()
        self.is_in_sample = True

    def note_opening(self) -> None:
        """A file is opened: what was before belongs to what was before."""
        if self._is_here() and self._at not in {DECODE, TRANSFORM}:
            self._hears_files = True
            self._go(READ)

    def decoding(self, original: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Around a decoder. One inside a transform is decoding still: Pillow decodes when pixels are asked for."""
        outer = self._at
        if outer == DECODE or not self._is_here():
            return original(*arguments, **options)
        self._hears_decoder = True
        self._go(DECODE)
        try:
            return original(*arguments, **options)
        finally:
            self._go(TRANSFORM if outer == TRANSFORM else _AFTER)

    def transforming(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Around a transform."""
        if self._at == TRANSFORM or not self._is_here():
            return function(*arguments, **options)
        self._hears_transform = True
        self._go(TRANSFORM)
        try:
            return function(*arguments, **options)
        finally:
            self._go(_AFTER)

    def end(self) -> None:
        """The sample is there."""
        self._go(_FIRST)
        self.is_in_sample = False
        walls, cpus = self._walls, self._cpus
        if not (self._hears_decoder or self._hears_transform):
            self.walls_s[self.begins_with] += sum(walls)
            self.cpus_s[self.begins_with] += sum(cpus)
        else:
            first = READ if self._hears_files or self._hears_decoder else self.begins_with
            for stage, at in (
                (first, _FIRST),
                (READ, READ),
                (DECODE, DECODE),
                (TRANSFORM, TRANSFORM),
                (TRANSFORM, _AFTER),
            ):
                self.walls_s[stage] += walls[at]
                self.cpus_s[stage] += cpus[at]
        self.slowest_s = max(self.slowest_s, sum(walls))

    def _is_here(self) -> bool:
        return self.is_in_sample and threading.get_ident() == self._thread

    def _go(self, at: int) -> None:
        now, cpu = time.monotonic(), time.thread_time()
        self._walls[self._at] += now - self._since
        self._cpus[self._at] += cpu - self._cpu_since
        self._at, self._since, self._cpu_since = at, now, cpu

    # What surrounds.

    def preparing(self, prepare: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Around the preparation of a sample, or of all samples of a batch at once."""
        self.begin()
        try:
            return prepare(*arguments, **options)
        finally:
            self.end()

    def collating(self, collate: Callable[[Any], Any], samples: Any) -> Any:
        """Around the joining of samples."""
        cpu, began = time.thread_time(), time.monotonic()
        try:
            return collate(samples)
        finally:
            self.walls_s[COLLATE] += time.monotonic() - began
            self.cpus_s[COLLATE] += time.thread_time() - cpu


_listening = threading.local()
"""`clock`: who listens in this thread."""
_has_hook = False


def listen_to_opening(clock: StageClock | None) -> None:
    """Tells a clock of each file that Python opens in this thread; None: nobody. A hook stays for the life of a process."""
    global _has_hook
    _listening.clock = clock
    if clock is not None and not _has_hook:
        _has_hook = True
        sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open":
        return
    clock: StageClock | None = getattr(_listening, "clock", None)
    if clock is not None and clock.is_in_sample:
        mode = arguments[1]
        if not (isinstance(mode, str) and mode[:1] in {"w", "a", "x"}):
            clock.note_opening()
