"""The last words of a worker that cannot speak: what it has in hand, and its stack.

A worker that is killed sends nothing more, and one that is stuck cannot be asked in Python. So each pool has one
nameless file in memory that all its processes share. Its first pages hold a few words that workers write as they go
(eight bytes each, aligned, so that a reader never sees half of one); behind them, `faulthandler` writes stacks from
inside a C signal handler, which works even where the interpreter lock is never released again.

Nameless, so that nothing can remain even if every process is killed: the kernel frees it with the last of them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import multiprocessing.reduction
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from headrace.engine.run.messages import NO_ORDER

__all__ = ["Board"]

# A real-time signal: user code, batch systems and other libraries use SIGUSR1 and SIGUSR2.
_STACK_SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGUSR2) - (3 if hasattr(signal, "SIGRTMAX") else 0)
_WORKER_FILE = f'"{Path(__file__).with_name("worker.py")}"'
_WORDS = 3  # per worker
_CRASHED = "Current thread "  # how faulthandler begins the stack of the thread that received the signal
_ANSWER_S = 1.0  # a live process answers within milliseconds; one that is stopped never does
_SETTLE_S = 0.05  # faulthandler writes in small pieces: the text is complete when it has stopped growing


class Board:
    """Shared words and a text, for one pool of W workers.

    Words: 0 = first order that is still wanted; then for each worker the order in hand, the item marked in it, and the
    thread that it is.
    """

    def __init__(self, num_workers: int, fd: int | None = None) -> None:
        self._num_workers = num_workers
        words_bytes = 8 * (1 + _WORDS * num_workers)
        size = -(-words_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        if fd is None:
            fd = _nameless_file()
            os.ftruncate(fd, size)
            os.lseek(fd, size, os.SEEK_SET)  # stacks are written behind the words; all processes share this offset
        self._fd = fd
        self._read_to = size
        self._map = mmap.mmap(fd, size)
        self._words = memoryview(self._map)[:words_bytes].cast("q")

    def __reduce__(self) -> tuple[Any, ...]:
        # Only while a worker starts (spawn, forkserver): DupFd hands the descriptor over. Under fork it is inherited.
        return _attach, (self._num_workers, multiprocessing.reduction.DupFd(self._fd))

    def clear(self) -> None:
        """Says that no worker has an order in hand; called before the first one starts."""
        for worker in range(self._num_workers):
            self.take(worker, NO_ORDER)

    # ---- the consumer's process -------------------------------------------------------------------------------------

    def want_from(self, seq: int) -> None:
        """Tells the workers to skip orders that come before `seq`: their run was abandoned."""
        self._words[0] = seq

    def in_hand(self, worker: int) -> tuple[int, int]:
        """Returns the number of the order that a worker has in hand and the item it marked; NO_ORDER for none."""
        return self._words[1 + _WORDS * worker], self._words[2 + _WORDS * worker]

    def ask_stack(self, pid: int, worker: int | None = None) -> str:
        """Returns the stacks of a live process's threads; empty if it does not answer. Takes 0.05 to 1 s.

        Args:
            pid: The process.
            worker: Only the thread that is this worker; None = all that run user code.
        """
        with contextlib.suppress(ProcessLookupError):  # it has just ended; what it wrote before is still here
            os.kill(pid, _STACK_SIGNAL)
        deadline = time.monotonic() + _ANSWER_S
        size = seen = self._read_to
        while time.monotonic() < deadline and (size == self._read_to or size != seen):
            seen = size
            time.sleep(_SETTLE_S)
            size = os.fstat(self._fd).st_size
        text = self._news()
        self._read_to += len(text)
        if worker is not None:
            text = "\n\n".join(stack for stack in text.split("\n\n") if self._is_of(worker, stack))
        return _user_frames(text)

    def read_text(self) -> str:
        """Returns the stack of a crash that was written since the last reading, of the thread that crashed."""
        text = self._news()
        self._read_to += len(text)
        stacks = text.split("\n\n")
        return _user_frames("\n\n".join([stack for stack in stacks if stack.startswith(_CRASHED)] or stacks))

    def crashed(self) -> int | None:
        """Returns the worker whose thread wrote the stack of a crash that nobody has read yet; None if there is none."""
        stacks = [stack for stack in self._news().split("\n\n") if stack.startswith(_CRASHED)]
        return next((w for w in range(self._num_workers) for stack in stacks if self._is_of(w, stack)), None)

    def _news(self) -> str:
        """What was written since the last reading, byte for character."""
        size = os.fstat(self._fd).st_size - self._read_to
        return os.pread(self._fd, size, self._read_to).decode("latin-1") if size > 0 else ""

    def _is_of(self, worker: int, stack: str) -> bool:
        """True if a paragraph of faulthandler's text is about the thread that is this worker."""
        heading, _, _ = stack.partition("\n")
        return f"hread 0x{self._words[3 + _WORDS * worker] % 2**64:016x}" in heading

    # ---- the worker's process ---------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Has this process write its stacks here when asked, and when native code crashes."""
        # What a fork inherits counts as in place although a library has put other handlers there since: Lightning, when a
        # training ends, puts back what Python knows of, and Python does not know of these.
        self.disarm()
        faulthandler.register(_STACK_SIGNAL, file=self._fd, all_threads=True, chain=False)
        faulthandler.enable(file=self._fd, all_threads=True)  # only so are they named

    def sit_down(self, worker: int) -> None:
        """Records that the calling thread is this worker."""
        self._words[3 + _WORDS * worker] = threading.get_ident()

    @staticmethod
    def disarm() -> None:
        """Undoes `arm`; needed where the interpreter is finalised, which closes the file before the handlers."""
        faulthandler.unregister(_STACK_SIGNAL)
        faulthandler.disable()

    def is_wanted(self, seq: int) -> bool:
        """Returns False if the run of that order was abandoned."""
        return seq >= self._words[0]

    def take(self, worker: int, seq: int) -> None:
        """Records which order the worker has in hand; NO_ORDER for none."""
        # The item first: dying between the two writes must not name an item of the order before.
        self._words[2 + _WORDS * worker] = NO_ORDER
        self._words[1 + _WORDS * worker] = seq

    def mark(self, worker: int, item: int) -> None:
        """Records which item of the order comes next."""
        self._words[2 + _WORDS * worker] = item

    def close(self) -> None:
        """Gives memory and descriptor back. May be called twice."""
        if self._fd >= 0:
            self._words.release()
            self._map.close()
            os.close(self._fd)
            self._fd = -1


def _nameless_file() -> int:
    """Opens a file that no directory lists."""
    if hasattr(os, "memfd_create"):  # Linux
        return os.memfd_create("headrace-board")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _attach(num_workers: int, handle: Any) -> Board:
    """Makes the worker's view of the pool's board."""
    return Board(num_workers, handle.detach())


def _user_frames(text: str) -> str:
    """Keeps of faulthandler's text what the user's code did: no thread of ours, no frame below the task.

    Under fork those frames would even be the consumer's, as they stood when the worker was started.
    """
    stacks = []
    for stack in text.split("\n\n"):
        lines = stack.splitlines()
        own = next((i for i, line in enumerate(lines) if _WORKER_FILE in line), len(lines))
        # A heading alone is a thread of ours; a paragraph without frames is about the build of the interpreter.
        if own > 1 and any(line.startswith("  File ") for line in lines):
            stacks.append("\n".join(lines[:own]))
    return "\n\n".join(stacks)
