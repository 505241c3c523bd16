"""Signals that ask for a save: noted when they come, handed on when it is done."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

__all__ = ["Signals"]

Handler = Callable[[int, FrameType | None], None]


class Signals:
    """Notes signals that ask for a save, and hands them on after it.

    A second signal of the same kind, while the save is still awaited, goes to whoever had the signal before: somebody is
    in a hurry. So does every signal when this object is gone, closed or not. Works in the main thread; in another one no
    signal can be caught, and none is.

    Args:
        numbers: The signals.
    """

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self.asked: signal.Signals | None = None
        """The signal that came and was not dealt with yet."""
        self._held: dict[signal.Signals, tuple[Handler, Any]] = {}
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                before = signal.getsignal(number)
                handler = _handler(weakref.ref(self), before)
                signal.signal(number, handler)
                self._held[number] = handler, before

    def note(self, which: signal.Signals) -> None:
        """A signal came."""
        if self.asked is which:
            self._hand_on(which)
        self.asked = which

    def done(self) -> None:
        """The save is done. SIGTERM goes on to whoever had it before, so the process ends as it would have."""
        which, self.asked = self.asked, None
        if which is signal.SIGTERM:
            self._hand_on(which)

    def close(self) -> None:
        """Gives each signal back, if it was not taken by somebody else since."""
        for number, (handler, before) in self._held.items():
            if signal.getsignal(number) is handler:
                with contextlib.suppress(
                    ValueError
                ):  # not the main thread: the handler gives it back when it is called
                    _give_back(number, before)
        self._held.clear()

    def _hand_on(self, which: signal.Signals) -> None:
        _, before = self._held.pop(which, (None, signal.SIG_DFL))
        _give_back(which, before)
        os.kill(os.getpid(), which)


def _handler(owner: weakref.ref[Signals], before: Any) -> Handler:
    """A handler that holds nobody: a run that was given up must not swallow signals."""

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        which = signal.Signals(number)
        signals = owner()
        if signals is not None and which in signals._held:
            signals.note(which)
        else:
            _give_back(which, before)
            os.kill(os.getpid(), which)

    return handle


def _give_back(which: signal.Signals, before: Any) -> None:
    signal.signal(which, signal.SIG_DFL if before is None else before)  # None: a handler that was not Python's
