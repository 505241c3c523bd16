"""The loops that are timed: over a loader; over one batch that is kept; over it, with the loader working beside."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

from headrace.doctor.timing.amounts import Tally
from headrace.doctor.timing.beside import Drain
from headrace.doctor.timing.consumer import Step
from headrace.doctor.timing.counting import SampleCounter
from headrace.doctor.timing.kept import Kept
from headrace.doctor.timing.marks import Marks
from headrace.doctor.timing.passing import Passing
from headrace.doctor.timing.tape import Goal, Tape

__all__ = ["Loop"]


@dataclasses.dataclass(kw_only=True)
class Loop:
    """What the three have in common. What is done per batch beside the step costs about two microseconds."""

    tape: Tape
    goal: Goal
    marks: Marks
    count: SampleCounter
    tally: Tally
    settle: Callable[[], None]
    """Called once, when the start of the first epoch is over, between two steps."""
    max_batches: float = math.inf
    """Per epoch."""
    note: Callable[[], None] | None = None
    """Called for each batch of the loader."""
    _is_settled: bool = dataclasses.field(default=False, init=False)

    def over_loader(self, passing: Passing, step: Step) -> None:
        """`for batch in loader: step(batch)`, epoch after epoch."""
        now, tape, marks, goal, count, tally = time.monotonic, self.tape, self.marks, self.goal, self.count, self.tally
        asked = now()
        while True:
            batches = self._begin(passing, asked)
            epoch, num, is_over, is_whole = passing.epoch, 0, False, False
            while not is_over and num < self.max_batches:
                marks.before_batch(asked, num, epoch)
                try:
                    batch = next(batches)
                except StopIteration:
                    is_whole = True
                    break
                got = now()
                num_samples = count(batch)
                tape.add(asked, got, epoch, num_samples)
                if num == 0:
                    tape.starts.append(passing.started(got))
                if self.note is not None:
                    self.note()
                if tally.wants(len(tape.asked_s) - 1):
                    tally.add(batch, num_samples)
                marks.before_step(got)
                step(batch)
                num += 1
                asked = now()
                if num >= goal.settles_after and not self._is_settled:
                    asked = self._settled()
                is_over = goal.is_over(num, asked)
            if self._end(passing, num, asked, is_whole=is_whole, is_over=is_over):
                return

    def over_kept(self, step: Step, kept: Kept, num_samples: int) -> None:
        """The step on one batch, again and again."""
        now, tape, goal = time.monotonic, self.tape, self.goal
        self.tally.add(kept.batch, num_samples)
        asked, num, is_over = now(), 0, False
        goal.begin_epoch(asked, None)
        while not is_over and num < self.max_batches:
            tape.add(asked, asked, 0, num_samples)
            step(kept.take())
            num += 1
            asked = now()
            if num >= goal.settles_after and not self._is_settled:
                asked = self._settled()
            is_over = goal.is_over(num, asked)
        tape.end_epoch(num, math.inf)
        tape.end_s = asked

    def beside_loader(self, passing: Passing, step: Step, kept: Kept, num_samples: int) -> None:
        """The step on one batch; for each step a thread takes a batch of the loader, and drops it."""
        now, tape, goal = time.monotonic, self.tape, self.goal
        self.tally.add(kept.batch, num_samples)
        asked = now()
        while True:
            batches = self._begin(passing, asked)
            epoch, num, is_over, is_whole = passing.epoch, 0, False, False
            with Drain(batches) as drain:
                is_whole = not drain.wait_for_first()
                got = now()
                self.marks.take_off()
                if not is_whole:
                    tape.starts.append(passing.started(got))
                while not is_whole and not is_over and num < self.max_batches:
                    tape.add(asked, got, epoch, num_samples)
                    step(kept.take())
                    num += 1
                    drain.take_one()
                    asked = got = now()
                    if num >= goal.settles_after and not self._is_settled:
                        asked = got = self._settled()
                    is_over = goal.is_over(num, asked)
                    is_whole = drain.is_at_end
            if self._end(passing, num, asked, is_whole=is_whole, is_over=is_over):
                return

    def _begin(self, passing: Passing, asked_s: float) -> Any:
        self.marks.put(f"start of epoch {passing.epoch + 1}")
        self.goal.begin_epoch(asked_s, passing.num_batches)
        return passing.begin(time.monotonic() - asked_s if passing.epoch >= 0 else 0.0)

    def _end(self, passing: Passing, num: int, asked_s: float, *, is_whole: bool, is_over: bool) -> bool:
        """An epoch is over; returns True if the run is, too."""
        self.tape.end_s = asked_s
        num_left = 0.0
        if is_whole:
            passing.last_size = num
        else:
            size = passing.num_batches
            num_left = math.inf if size is None or size < num else size - num
            passing.leave()
        self.tape.end_epoch(num, num_left)
        return is_over or self.goal.is_over_after_epoch(num, asked_s)

    def _settled(self) -> float:
        self._is_settled = True
        self.settle()
        return time.monotonic()
