"""Says what is in hand while a run waits for its loader, so that a loader that hangs is found out and named."""

from __future__ import annotations

import contextlib
import time

from headrace.doctor.lab.bench import Bench

__all__ = ["Marks"]

EVERY_S = 0.2
"""A mark costs some microseconds: a loader that delivers often is marked only so often."""
LONG_STEP_S = 0.05
"""Before a step that may take longer than this the mark is taken off: a training step has no deadline."""
FIRST_STEPS = 3
"""The first steps may compile, whatever others take."""


class Marks:
    """One run's marks on the flight recorder."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._held: contextlib.AbstractContextManager[None] | None = None
        self._marked_s = 0.0
        self._num_steps = 0
        self._step_began_s = 0.0
        self._was_long = False

    def put(self, what: str) -> None:
        """From here on, `what` is in hand, and its deadline runs."""
        self.take_off()
        self._held = self._bench.holding(None, None, stage=what)
        self._held.__enter__()
        self._bench.stop_listening()  # spies would cost time in the loop, and in workers that are forked now
        self._marked_s = time.monotonic()

    def take_off(self) -> None:
        """Nothing is in hand: no deadline runs."""
        if self._held is not None:
            held, self._held = self._held, None
            held.__exit__(None, None, None)

    def before_batch(self, now_s: float, number: int, epoch: int) -> None:
        """A batch is about to be asked for."""
        self._was_long = now_s - self._step_began_s > LONG_STEP_S
        if self._held is None or now_s - self._marked_s > EVERY_S:
            self.put(f"batch {number} of epoch {epoch}")

    def before_step(self, now_s: float) -> None:
        """A step is about to begin."""
        self._step_began_s = now_s
        self._num_steps += 1
        if self._was_long or self._num_steps <= FIRST_STEPS:
            self.take_off()
