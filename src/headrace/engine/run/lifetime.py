"""The last safety net: crews that are alive when the interpreter exits or when the process forks.

A run normally ends its crew itself, in the `finally` of its generator. Two moments pass that by: at the exit of the
interpreter generators may never be finalised, and a child made by fork gets a copy of every generator and pool.
"""

from __future__ import annotations

import atexit
import multiprocessing.util  # noqa: F401 - for the order of the handlers below
import os
from typing import Protocol

__all__ = ["HASTY_GRACE_S", "PATIENT_GRACE_S", "enrol", "strike_off"]

PATIENT_GRACE_S = 5.0
"""Seconds for `task.close` after a complete run, as in PyTorch; a worker that takes longer is ended by force."""
HASTY_GRACE_S = 1.0
"""Seconds to finish the order in hand after a break, an exception or Ctrl-C: nobody wants its result any more."""


class _Crew(Protocol):
    def end(self, grace_s: float) -> BaseException | None: ...
    def forget(self) -> None: ...


# Strong references on purpose: a WeakSet runs Python code while it changes, which is no good in a fork handler. A crew
# leaves the set in `end`, which the run's generator always calls; so nothing lives longer because of it.
_LIVE: set[_Crew] = set()


def enrol(crew: _Crew) -> None:
    """Has the crew ended at exit, and forgotten in forked children, unless it is struck off before."""
    _LIVE.add(crew)


def strike_off(crew: _Crew) -> None:
    """Takes a crew that has ended off the list."""
    _LIVE.discard(crew)


def _end_all() -> None:
    for crew in tuple(_LIVE):
        crew.end(HASTY_GRACE_S)


def _forget_all() -> None:
    # In a forked child: its copies of our pipe ends would keep the pipes open after the parent's death, so that
    # workers would wait for ever instead of seeing the end. Holds for every fork, also those of other libraries.
    for crew in tuple(_LIVE):
        crew.forget()
    _LIVE.clear()


# Handlers run last in, first out. multiprocessing's own (registered when its util is imported, hence the import above)
# would send SIGTERM to daemonic children; ours must come before it, so that tasks are closed in an orderly way.
atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget_all)
