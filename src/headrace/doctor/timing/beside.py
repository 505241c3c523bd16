"""A thread that takes batches out of a loader at the pace of the steps, and drops them. No step waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Self

__all__ = ["Drain"]

COMES_BACK_S = 5.0
"""Seconds for a batch that is on its way when the drain ends; after that the pass is ended under it."""


class Drain:
    """Use as a context manager. What the loader raises is raised by the next call here."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._wanted = threading.Semaphore(1)
        self._has_first = threading.Event()
        self._is_ended = False
        self._error: BaseException | None = None
        self.is_at_end = False
        """The epoch is over: there was no further batch."""
        self._num_taken = 0
        self._thread = threading.Thread(target=self._take, name="headrace takes and drops batches", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended = True
        self._wanted.release()
        self._thread.join(COMES_BACK_S)

    def wait_for_first(self) -> bool:
        """Waits until the first batch is there; False: there is none."""
        self._has_first.wait()
        self._raise()
        return self._num_taken > 0

    def take_one(self) -> None:
        """Asks for one more batch."""
        if self._error is not None:
            self._raise()
        self._wanted.release()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _take(self) -> None:
        try:
            while True:
                self._wanted.acquire()
                if self._is_ended:
                    return
                next(self._batches)
                self._num_taken += 1
                self._has_first.set()
        except StopIteration:
            self.is_at_end = True
        except BaseException as error:
            self._error = error
        finally:
            self._has_first.set()
