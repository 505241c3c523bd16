"""When a checkpoint is due: after so many steps, after so much time, or when the machine asks for the process to end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any

from headrace.errors import ConfigurationError
from headrace.observe import Clock, monotonic

__all__ = ["Cadence", "Signals"]


class Cadence:
    """Counts steps and seconds since the last save.

    Args:
        every: Optimizer steps between two saves; None: not by steps.
        every_s: Seconds between two saves; None: not by time.
        clock: Seconds on a monotonic clock.
    """

    def __init__(self, *, every: int | None, every_s: float | None, clock: Clock = monotonic) -> None:
        for name, value in (("every", every), ("every_s", every_s)):
            if value is not None and value <= 0:
                raise ConfigurationError(
                    f"{name}={value}: must be more than 0", do=f"leave {name} out to save only when asked"
                )
        self.every, self.every_s = every, every_s
        self._clock = clock
        self._saved_at = clock()

    def is_due(self, step: int) -> bool:
        """True if a save is due after that step."""
        if self.every is not None and step % self.every == 0:
            return True
        return self.every_s is not None and self._clock() - self._saved_at >= self.every_s

    def note_saved(self) -> None:
        """Begins to count the seconds anew."""
        self._saved_at = self._clock()


class Signals:
    """Notes signals that ask for a save, and hands them on after it.

    A second signal of the same kind, while the save is still awaited, goes to whoever had the signal before: somebody is
    in a hurry. Works in the main thread; in another one no signal can be caught, and none is.
    """

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self.asked: signal.Signals | None = None
        """The signal that came and was not dealt with yet."""
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                self._before[number] = signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        which = signal.Signals(number)
        if self.asked is which:
            self._hand_on(which)
        self.asked = which

    def done(self) -> None:
        """The save is done. SIGTERM goes on to whoever had it before, so the process ends as it would have."""
        which, self.asked = self.asked, None
        if which is signal.SIGTERM:
            self._hand_on(which)

    def close(self) -> None:
        """Gives each signal back."""
        for number, before in self._before.items():
            with contextlib.suppress(ValueError, TypeError):  # not the main thread; or a handler that was not Python's
                if signal.getsignal(number) == self._note:
                    signal.signal(number, before)
        self._before.clear()

    def _hand_on(self, which: signal.Signals) -> None:
        before = self._before.pop(which, signal.SIG_DFL)
        signal.signal(which, signal.SIG_DFL if before is None else before)
        os.kill(os.getpid(), which)
