"""How fast a loop is and how much of it is waiting for batches: for the history, between two entries of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from headrace.engine.batch import leading_size
from headrace.observe import Clock, monotonic

__all__ = ["Pace"]


class Pace:
    """Seconds and samples since the last look.

    Args:
        clock: Seconds on a monotonic clock.
    """

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._wait_s = 0.0
        self._num_samples = 0

    def timed(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yields the batches; the seconds until each of them are waiting."""
        for batch in self._waited(iter(batches)):
            self._num_samples += leading_size(batch) or 0
            yield batch

    def _waited(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            asked = self._clock()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self._wait_s += self._clock() - asked
            yield batch

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves the seconds of the block out: an evaluation is no training, and would make the pace look slower."""
        begun = self._clock()
        try:
            yield
        finally:
            self._since += self._clock() - begun

    def values(self) -> dict[str, float]:
        """Returns samples per second and the share of waiting since the last call; empty if no time has passed."""
        now = self._clock()
        spent_s, wait_s, num = now - self._since, self._wait_s, self._num_samples
        self._since, self._wait_s, self._num_samples = now, 0.0, 0
        return {} if spent_s <= 0 else {"samples_per_s": num / spent_s, "wait_share": wait_s / spent_s}
