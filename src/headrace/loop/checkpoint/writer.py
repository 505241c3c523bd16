"""Writing beside the training: one checkpoint at a time, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Writer"]


class Writer:
    """Runs one job at a time in a thread; the next one waits for it."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Waits for the job before, and starts this one."""
        self.wait()

        def run() -> None:
            try:
                job()
            except BaseException as error:
                self._failure = error

        # Not a daemon: a program that ends waits for the checkpoint that is being written.
        self._thread = threading.Thread(target=run, name="headrace-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Returns when nothing is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def failure(self) -> BaseException | None:
        """Returns what the last job that ended failed with, once; None: it did not, or is not at its end."""
        if self._thread is not None and self._thread.is_alive():
            return None
        failure, self._failure = self._failure, None
        return failure
