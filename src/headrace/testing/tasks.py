"""Work for the exam of runners: tasks and orders that survive pickling, and light to import in a worker.

An `Act` is an order that says itself what is to be done with it, so that each test reads as a list of acts.
"""

# ruff: noqa: ARG001 - acts have one signature, whether they need its arguments or not

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import Where
from headrace.protocols import Mark

__all__ = ["Act", "ActTask", "Latch", "TwoArgumentError"]


@dataclasses.dataclass(frozen=True, slots=True)
class Latch:
    """A gate between threads or processes of any kind: a file that is there or not."""

    path: Path

    def open(self) -> None:
        """Lets everyone through who waits or will wait."""
        self.path.touch()

    def wait(self) -> None:
        """Blocks until the latch is open."""
        while not self.path.exists():
            time.sleep(0.002)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One order."""

    do: Callable[[ActTask, Act, Mark], Any]
    """Called in the worker with the task, this act and the mark; its result is the result of the order."""
    value: int = 0
    latch: Latch | None = None
    """Waited for before it is done."""
    opens: Latch | None = None
    """Opened after it is done."""
    pin: int | None = None
    """Worker that must do it."""


class ActTask:
    """Executes acts.

    Args:
        journal: File that gets a line `open W` or `close W` for each such call in worker W; None = keep no journal.
        fails_in: `open` or `close`: where to raise ValueError.
        luggage: Anything that the task holds, to be pickled with it.
    """

    def __init__(self, journal: Path | None = None, fails_in: str = "", luggage: Any = None) -> None:
        self.journal = journal
        self.fails_in = fails_in
        self.luggage = luggage
        self._workers: dict[int, int | None] = {}

    @property
    def worker(self) -> int | None:
        """The worker that the calling thread is."""
        return self._workers[threading.get_ident()]

    def open(self, worker: int | None, num_workers: int) -> None:
        """Remembers which worker this thread is."""
        self._workers[threading.get_ident()] = worker
        self._write(f"open {worker}\n")
        if self.fails_in == "open":
            raise ValueError(f"opening fails in one of {num_workers}")

    def run(self, order: Act, mark: Mark) -> Any:
        """Does what the act says."""
        if order.latch is not None:
            mark(1)
            order.latch.wait()
        result = order.do(self, order, mark)
        if order.opens is not None:
            order.opens.open()
        return result

    def close(self) -> None:
        """Writes the journal."""
        self._write(f"close {self.worker}\n")
        if self.fails_in == "close":
            raise ValueError("closing fails")

    def pinned_to(self, order: Act) -> int | None:
        """Returns what the act says."""
        return order.pin

    def where(self, order: Act, item: int | None) -> Where:
        """Names the act by its value, and the item as a position."""
        return Where(sample_id=f"act-{order.value}", position=item)

    def _write(self, line: str) -> None:
        if self.journal is not None:
            with self.journal.open("a") as file:  # one short write in append mode: lines of several workers do not mix
                file.write(line)


class TwoArgumentError(Exception):
    """An exception of the kind that plain pickle cannot bring home: two required arguments, and a lock inside."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(f"{reason} ({code})")
        self.code = code
        self.lock = threading.Lock()


def square(task: ActTask, act: Act, mark: Mark) -> int:
    """Returns the square of the value."""
    mark(0)
    return act.value**2


def make_arrays(task: ActTask, act: Act, mark: Mark) -> dict[str, Any]:
    """Returns arrays of several types and layouts that depend on the value only."""
    mark(0)
    rng = np.random.default_rng(act.value)
    image = rng.integers(0, 256, (16, act.value % 5, 3), dtype=np.uint8)
    return {
        "image": image,
        "columns": np.asfortranarray(rng.random((4, 3))),
        "every_other": rng.random(10)[::2],
        "flags": rng.random(7) < 0.5,
        "complex": rng.random(3) + 1j,
        "none": None,
        "text": f"act {act.value}",
        "nested": [(act.value, image[:2].copy())],
    }


def name_worker(task: ActTask, act: Act, mark: Mark) -> int | None:
    """Returns the number of the worker."""
    return task.worker


def name_process(task: ActTask, act: Act, mark: Mark) -> int:
    """Returns the number of the process that executes it."""
    return os.getpid()


def fail(task: ActTask, act: Act, mark: Mark) -> None:
    """Raises ValueError with a note and a cause."""
    mark(0)
    error = ValueError("bad value", act.value)
    error.add_note("a note of the user's own")
    raise error from KeyError("the cause")


def fail_awkwardly(task: ActTask, act: Act, mark: Mark) -> None:
    """Raises an exception that does not unpickle."""
    raise TwoArgumentError("awkward", act.value)


def fail_locally(task: ActTask, act: Act, mark: Mark) -> None:
    """Raises an exception whose class only exists inside this call."""

    class LocalError(Exception):
        pass

    raise LocalError("nobody knows me")


def fail_on_file(task: ActTask, act: Act, mark: Mark) -> None:
    """Raises an OSError, which keeps its file name outside its arguments."""
    Path("/no/such/file").read_bytes()


def stop_iteration(task: ActTask, act: Act, mark: Mark) -> None:
    """Raises StopIteration, as `next()` does in a data set that has run dry."""
    raise StopIteration


def exit_program(task: ActTask, act: Act, mark: Mark) -> None:
    """Tries to end the program."""
    sys.exit(3)


def interrupt(task: ActTask, act: Act, mark: Mark) -> None:
    """Raises KeyboardInterrupt, as a library may that polls for it."""
    raise KeyboardInterrupt


def return_unpicklable(task: ActTask, act: Act, mark: Mark) -> Any:
    """Returns what no process can send."""
    return threading.Lock()


def kill_self(task: ActTask, act: Act, mark: Mark) -> None:
    """Dies as if by the out-of-memory killer, while at item 2."""
    mark(2)
    os.kill(os.getpid(), signal.SIGKILL)


def crash(task: ActTask, act: Act, mark: Mark) -> None:
    """Dies of a fault in native code, while at item 3."""
    mark(3)
    signal.raise_signal(signal.SIGSEGV)  # in this very thread, as a fault would be


def leave(task: ActTask, act: Act, mark: Mark) -> None:
    """Ends the interpreter without a word."""
    os._exit(7)
