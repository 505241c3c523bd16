"""Collects what one setting does into rounds that are long enough to be judged."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any

from headrace.engine.governor.governor import Observation, Setting
from headrace.engine.governor.sizes import batch_bytes
from headrace.observe import Clock

__all__ = ["Meter"]

_ENOUGH = ((16, 0.1), (4, 0.5), (1, 2.0))
"""A round is complete with so many batches in so many seconds: many quick ones, or few slow ones."""


class Meter:
    """Measures the results of one setting; what comes before it has warmed up is left out."""

    def __init__(self, setting: Setting, clock: Clock) -> None:
        self._setting = setting
        self._clock = clock
        # In the caller the first batch is cold; of workers, what was in flight before all of them were at work.
        self._num_cold = setting.max_in_flight
        self._reset()

    def _reset(self) -> None:
        self._num = 0
        self._began_s = self._ended_s = 0.0
        self._wait_s = self._cpu_s = self._service_s = 0.0
        self._bytes = 0

    def measure(self, results: Iterator[Any]) -> Generator[Any, None, None]:
        """Yields the results, and measures how long each was waited for."""
        while True:
            asked_s, asked_cpu_s = self._clock(), time.thread_time()
            try:
                result = next(results)
            except StopIteration:
                return
            cpu_s = time.thread_time() - asked_cpu_s
            self._add(asked_s, self._clock(), cpu_s, result)
            yield result
            del result  # the consumer's memory, not ours, while we wait for the next one

    def _add(self, asked_s: float, got_s: float, cpu_s: float, result: Any) -> None:
        if self._num_cold > 0:
            self._num_cold -= 1
            return
        if self._num == 0:
            self._began_s = asked_s
            self._bytes = batch_bytes(getattr(result, "batch", result))
        self._num += 1
        self._ended_s = got_s
        self._wait_s += got_s - asked_s
        self._cpu_s += cpu_s
        self._service_s += sum(stage.wall_s for stage in getattr(result, "stage_times", ()))

    def round(self) -> Observation | None:
        """Returns what was seen since the last round, if it is enough to be judged."""
        wall_s = self._ended_s - self._began_s
        fewest = 2 * self._setting.num_workers  # results of workers that started together come in waves
        if self._num < fewest or not any(self._num >= num and wall_s >= seconds for num, seconds in _ENOUGH):
            return None
        is_caller = self._setting.num_workers == 0
        seen = Observation(
            num_batches=self._num,
            wall_s=wall_s,
            wait_s=self._wait_s,
            service_s=(self._wait_s if is_caller else self._service_s) / self._num,
            cpu_share=self._cpu_s / self._wait_s if is_caller and self._wait_s else None,
            batch_bytes=self._bytes,
        )
        self._reset()
        return seen
