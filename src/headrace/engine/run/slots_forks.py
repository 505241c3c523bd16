"""Children that this process forked while it held slots: they see the same memory, and must not see it change.

A child made by fork has every batch that its parent held, in the very same memory. When the parent drops such a batch,
its slot may only be used again if no child can read it any more. What tells is a pipe, made just before the fork: the
child holds the writing end, so the parent's end hangs up when the child, and all that it forked in turn, have ended or
become other programs. That is exactly as long as the memory can be read.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import select
import threading

__all__ = ["held", "is_fenced", "look_up", "now"]

held: set[object] = set()
"""What must outlive forks, in any pool; while it is empty, a fork costs nothing."""

_clock = itertools.count()
_fences: list[_Fence] = []
_forking = threading.local()


def now() -> float:
    """Returns a time that is later than every time returned before."""
    return next(_clock)


def is_fenced(since: float) -> bool:
    """Returns True while a child lives that was forked after that time."""
    return any(fence.covers(since) and not fence.is_over() for fence in tuple(_fences))


def look_up() -> None:
    """Gives descriptors back that told of children who have ended."""
    for fence in tuple(_fences):
        fence.is_over()


class _Fence:
    """Stands from just before a fork until the child, and all that it forks, can read our memory no more."""

    def __init__(self) -> None:
        self._until = math.inf
        self._ends: list[int] = []
        # Without descriptors the fence stands for ever: slots are lost, no byte is.
        with contextlib.suppress(OSError):
            self._ends += os.pipe()

    def covers(self, since: float) -> bool:
        return since < self._until

    def is_over(self) -> bool:
        if len(self._ends) != 1:  # the fork is going on, or it is over already, or there was no pipe
            return self not in _fences
        poller = select.poll()
        with contextlib.suppress(IndexError, OSError):  # another thread came first
            poller.register(self._ends[0], 0)
            if poller.poll(0):
                end = self._ends.pop()  # atomic: only one thread gets it
                _fences.remove(self)
                os.close(end)
        return not self._ends

    def set_in_parent(self) -> None:
        self._until = now()
        if self._ends:
            os.close(self._ends.pop())

    def forget(self) -> None:
        """In the child: the reading end is the parent's business; the writing end stays, and tells that we live."""
        if self._ends:
            os.close(self._ends.pop(0))


def _before() -> None:
    look_up()
    _forking.fence = None
    if held:
        _forking.fence = _Fence()
        _fences.append(_forking.fence)


def _after_in_parent() -> None:
    if _forking.fence is not None:
        _forking.fence.set_in_parent()


def _after_in_child() -> None:
    for fence in tuple(_fences):
        fence.forget()
    _fences.clear()
    held.clear()  # the parent's; what they were is guarded by the pipe, for our own children too


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
