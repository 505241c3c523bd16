"""Collects what one setting does into rounds that are long enough to be judged."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from headrace.engine.governor.governor import Observation, Setting
from headrace.engine.governor.sizes import batch_bytes
from headrace.machine import thread_awake_s
from headrace.observe import Clock

__all__ = ["Meter"]

_ENOUGH = ((16, 0.1), (4, 0.5), (1, 2.0))
"""A round is complete with so many batches in so many seconds: many quick ones, or few slow ones."""
_SHORTEST_S = min(seconds for _, seconds in _ENOUGH)
_AWAKE_EVERY = 8
"""Of so many batches made in the caller, for one it is asked whether making it was computing: that takes 20 microseconds."""


class Meter:
    """Measures the results of one setting, over all stretches in which it is in force.

    What comes before a stretch has warmed up is left out: in the caller the first batch, of workers what was in flight
    before all of them were at work. If that leaves nothing of a stretch, because the epochs are short, less is left out
    of the next one.
    """

    def __init__(self, setting: Setting, clock: Clock) -> None:
        self._setting = setting
        self._clock = clock
        self._num_cold = 2 * setting.max_in_flight
        self._left_cold = 0
        self._has_counted = False
        self._is_in_caller = setting.num_workers == 0
        self._reset()

    def _reset(self) -> None:
        self._num = 0
        self._wall_s = self._wait_s = self._sampled_s = self._awake_s = self._service_s = 0.0
        self._bytes = 0

    def measure(self, results: Iterator[Any]) -> Generator[Any, None, None]:
        """Yields the results of one stretch, and measures how long each was waited for."""
        if not self._has_counted:
            self._num_cold //= 2
        self._left_cold, self._has_counted = self._num_cold, False
        before_s: float | None = None
        while True:
            is_sampled = self._is_in_caller and self._left_cold == 0 and self._num % _AWAKE_EVERY == 0
            asked_awake_s = thread_awake_s() if is_sampled else 0.0
            asked_s = self._clock()
            try:
                result = next(results)
            except StopIteration:
                return
            got_s = self._clock()
            if is_sampled:
                self._sampled_s += got_s - asked_s
                self._awake_s += thread_awake_s() - asked_awake_s
            if self._left_cold > 0:
                self._left_cold -= 1
            else:
                self._add(got_s - asked_s, got_s - (asked_s if before_s is None else before_s), result)
            before_s = got_s
            yield result
            del result  # the consumer's memory, not ours, while we wait for the next one

    def sample(self, wait_s: float, awake_s: float, result: Any) -> None:
        """Counts one result that was made in the caller: the seconds that it took, and those of them awake."""
        self._sampled_s += wait_s
        self._awake_s += awake_s
        self._add(wait_s, wait_s, result)

    def add_step(self, step_s: float) -> None:
        """Counts what the consumer did with the result that was sampled last."""
        self._wall_s += step_s

    def _add(self, wait_s: float, wall_s: float, result: Any) -> None:
        """Counts one result: the seconds it was waited for, and those since the one before."""
        self._has_counted = True
        if self._num == 0:
            self._bytes = batch_bytes(getattr(result, "batch", result))
        self._num += 1
        self._wall_s += wall_s
        self._wait_s += wait_s
        if not self._is_in_caller:
            self._service_s += sum([stage.wall_s for stage in getattr(result, "stage_times", ())])

    def round(self) -> Observation | None:
        """Returns what was seen since the last round, if it is enough to be judged."""
        if self._wall_s < _SHORTEST_S:  # asked for each batch
            return None
        fewest = 2 * self._setting.num_workers  # results of workers that started together come in waves
        if self._num < fewest or not any(self._num >= num and self._wall_s >= seconds for num, seconds in _ENOUGH):
            return None
        seen = Observation(
            num_batches=self._num,
            wall_s=self._wall_s,
            wait_s=self._wait_s,
            service_s=(self._wait_s if self._is_in_caller else self._service_s) / self._num,
            cpu_share=self._awake_s / self._sampled_s if self._sampled_s else None,
            batch_bytes=self._bytes,
        )
        self._reset()
        return seen
