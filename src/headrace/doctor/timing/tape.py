"""Writes down when each batch was asked for and when it was there, and says when enough has been seen.

Costs below a microsecond per batch: lists that grow, and a comparison or two.
"""

from __future__ import annotations

import math

from headrace.doctor.timing.crew import Crew
from headrace.doctor.timing.timed import EpochStart, Steps
from headrace.doctor.timing.windows import FEWEST_BATCHES, Epoch, lead_of

__all__ = ["MAX_STEPS", "Goal", "Tape"]

MAX_STEPS = 200_000
"""Steps of one run: some 10 MB of record. A loader that is quicker than that needs no longer window."""


class Tape:
    """What happened, in order. `time.monotonic()`."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        self.got_s: list[float] = []
        self.epoch_of: list[int] = []
        self.num_samples: list[int] = []
        self.starts: list[EpochStart] = []
        self.epochs: list[Epoch] = []
        self.end_s = 0.0

    def add(self, asked_s: float, got_s: float, epoch: int, num_samples: int) -> None:
        """Writes down one batch."""
        self.asked_s.append(asked_s)
        self.got_s.append(got_s)
        self.epoch_of.append(epoch)
        self.num_samples.append(num_samples)

    def end_epoch(self, num_batches: int, num_left: float) -> None:
        """Writes down that an epoch of so many batches is over."""
        if num_batches:
            num = len(self.asked_s)
            self.epochs.append(Epoch(first=num - num_batches, last=num, num_left=num_left))

    @property
    def steps(self) -> Steps:
        """All of it."""
        return Steps(
            asked_s=tuple(self.asked_s),
            got_s=tuple(self.got_s),
            end_s=self.end_s,
            epochs=tuple(self.epoch_of),
            num_samples=tuple(self.num_samples),
        )


class Goal:
    """When a run is over: after so many epochs, or when its steady part is as long as is wanted; and in any case in time."""

    def __init__(self, crew: Crew, *, began_s: float, window_s: float, most_s: float, num_epochs: int | None) -> None:
        """Makes the goal of a `TimedRun`; `began_s` is when its seconds begin."""
        self._crew, self._window_s, self._num_epochs = crew, window_s, num_epochs
        self._deadline = began_s + most_s
        self._steps_left = MAX_STEPS
        self._steady_s = 0.0
        self._num_ended = 0
        self.lead = lead_of(crew, 0)
        """Batches at the beginning of this epoch that do not count."""
        self.settles_after = max(crew.first_steps, self.lead - crew.in_flight)
        """Batches of the run after which the start is over. What fills up while something is looked at then is taken
        away again before the steady part begins."""
        self._fewest = max(FEWEST_BATCHES, crew.num_workers)
        self._epoch_began_s = self._since = self._until = began_s
        self._tail = math.inf

    def begin_epoch(self, now_s: float, size: int | None) -> None:
        """An epoch begins, of `size` batches; None: it does not say."""
        self.lead = lead_of(self._crew, self._num_ended)
        self._epoch_began_s = self._since = self._until = now_s
        self._tail = self._tail_of(size)

    def is_over(self, num_done: int, now_s: float) -> bool:
        """After a step: is the run over? `num_done`: batches of this epoch."""
        self._steps_left -= 1
        if now_s >= self._deadline or self._steps_left <= 0:
            return True
        if num_done <= self.lead:
            self._since = self._until = now_s
            return False
        if num_done <= self._tail:
            self._until = now_s
        if self._num_epochs is not None or min(num_done, self._tail) < self.lead + self._fewest:
            return False
        return self._steady_s + self._until - self._since >= self._window_s

    def is_over_after_epoch(self, num_done: int, now_s: float) -> bool:
        """An epoch of `num_done` batches has ended: is the run over?"""
        self._num_ended += 1
        if num_done == 0 or now_s >= self._deadline or self._steps_left <= 0:
            return True
        if self._num_epochs is not None:
            return self._num_ended >= self._num_epochs
        if min(self._tail, self._tail_of(num_done)) >= self.lead + self._fewest:
            self._steady_s += self._until - self._since
        elif self._num_ended > 1:  # it will count as a whole, the first one not
            self._steady_s += now_s - self._epoch_began_s
        return self._num_ended > 1 and self._steady_s >= self._window_s

    def _tail_of(self, size: int | None) -> float:
        """Place from which on producers have nothing left to do."""
        return math.inf if size is None or self._crew.runs_on else size - self._crew.in_flight
