"""Runs experiments in a child with a deadline: whatever the user's code does there, this process goes on and knows.

    parent                                             child (fresh interpreter, own session)
    Lab.run(experiment) ──── pickled experiment ────▶  loads TARGET once, runs the experiment on its subject
             ▲          ◀─── records, one by one ────  yields each finished record at once: nothing finished is lost
             └────────────── flight recorder ────────  names the sample before it is prepared

A child serves one experiment after another for as long as it is well. When a sample is stuck (no other sample begun
for `per_sample_s`) the stacks of all threads are dumped, also out of native code, and this child alone is ended, with
everything that it started. The next experiment gets a new child. All time together is bounded by the budget.
"""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, Protocol, Self

from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.child import Child
from headrace.doctor.lab.launch import launcher_for
from headrace.doctor.lab.recorder import Mark
from headrace.doctor.lab.starting import Launcher
from headrace.doctor.stacks import trim_dump
from headrace.doctor.subject import Subject
from headrace.errors import TargetError
from headrace.machine import cpu_pressure, usable_memory

__all__ = ["Budget", "Ending", "Experiment", "Lab"]

MEMORY_SHARE = 0.8
"""Part of the memory that was free at the start which the examined code may take: more would bring others down."""
MEMORY_TICKS = 10
"""Ticks between two looks at the memory: each takes about a millisecond per process."""
TICK_S = 0.05
"""How often the flight recorder is looked at; a few microseconds each time."""
MAX_LATE = 1000
"""Records that are still taken when the budget is spent: what the pipe may hold of finished samples."""
FIRST_SAMPLE_FACTOR = 2.0
"""A child's first sample may open archives and import decoders: it gets this many times the deadline."""


class Experiment(Protocol):
    """What runs in the child. A frozen dataclass of plain values: it is pickled, and imported there by name."""

    name: ClassVar[str]
    starts_processes: ClassVar[bool]
    """True: it has workers of its own, so its child serves no other experiment, and ends with all of them."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Any]:
        """Yields records: plain values that pickle."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an experiment ended."""

    outcome: Literal["done", "failed", "stuck", "crashed", "over-budget"]
    """`failed`: the experiment itself raised; `stuck` and `crashed`: see `mark`."""
    wall_s: float
    """Seconds, without the start of the child."""
    mark: Mark | None = None
    """What was in hand when it ended; None: nothing."""
    mark_s: float = 0.0
    """Seconds that it had been in hand."""
    cause: str = ""
    """For `crashed` the signal or exit status; for `failed` the error."""
    at: str | None = None
    """`file:line in function` of the user's code where the child stood."""
    stack: str | None = None
    """The child's stacks, innermost frame first."""
    output: str = ""
    """The end of what the user's code printed."""


class UserTraceback(Exception):
    """The traceback of the user's code in the child, shown as the cause of an error in the parent."""

    __module__ = "builtins"  # tracebacks leave out this module's name; ours would say nothing to the reader

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


class Budget:
    """Seconds for everything together, from the moment it is made."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 = spent."""
        return max(0.0, self._end - self._clock())


class Lab:
    """Holds at most one child at a time. Use as a context manager: on leaving, whatever was started has ended."""

    def __init__(self, spec: str, *, budget: Budget, per_sample_s: float, launcher: Launcher | None = None) -> None:
        """Starts nothing of the user's yet.

        Args:
            spec: TARGET, for messages and for the default launcher.
            budget: Seconds for everything.
            per_sample_s: Seconds after which a sample is stuck.
            launcher: How children are started. Default: from TARGET, in the fastest way of this platform.
        """
        self._spec = spec
        self._launcher = launcher
        self._memory_limit = MEMORY_SHARE * usable_memory()
        self._budget = budget
        self._per_sample_s = per_sample_s
        self._child: Child | None = None
        self.cpu_pressure = cpu_pressure()
        """Percent of the ten seconds before the lab was opened in which something waited for a core."""
        self.split = ""
        """Name of the loader that experiments get, where TARGET has several; empty: the first."""
        self.loading_s: float | None = None
        """Seconds that the first child took to start and to load TARGET; None: it has not."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._launcher is not None:
            launcher, self._launcher = self._launcher, None
            launcher.close()

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self._budget.left_s

    def close(self) -> None:
        """Ends the child, if there is one, and everything that it started."""
        if self._child is not None:
            child, self._child = self._child, None
            child.end()

    def run(self, experiment: Experiment, receive: Callable[[Any], None]) -> Ending:
        """Runs one experiment and hands each of its records over as soon as it is there.

        Raises:
            TargetError: TARGET could not be loaded. Once it has been, a failure to load it again is an ending.
        """
        if self._budget.left_s <= 0:
            return Ending(outcome="over-budget", wall_s=0.0)
        try:
            child = self._well_child()
        except TargetError as error:
            if self.loading_s is None:
                raise
            outcome: Literal["failed", "over-budget"] = "failed" if self._budget.left_s > 0 else "over-budget"
            return Ending(outcome=outcome, wall_s=0.0, cause=f"it could not be loaded again: {error.what}")
        started = time.monotonic()
        ending = None
        try:
            if child.send((self.split, experiment)):
                ending = self._watch(child, receive, started)
            if ending is None:
                ending = self._crashed(child, started)
        finally:
            # Also when interrupted: a child that is not known to be well is not used again.
            if ending is None or ending.outcome not in {"done", "failed"} or experiment.starts_processes:
                self.close()
        return ending

    def _well_child(self) -> Child:
        if self._child is None:
            started = time.monotonic()
            if self._launcher is None:
                self._launcher = launcher_for(self._spec)
            self._child = Child(self._launcher)
            try:
                self._wait_for_target(self._child)
            except BaseException:
                self.close()
                raise
            if self.loading_s is None:
                self.loading_s = time.monotonic() - started
        return self._child

    def _wait_for_target(self, child: Child) -> None:
        """Waits until the child has loaded TARGET, which may import large libraries: only the budget bounds it."""
        num_ticks = 0
        while True:
            event = child.next_event(TICK_S)
            if event is not None:
                kind, value = event
                if kind == "refused":
                    error, stack = value
                    raise error from (None if stack is None else UserTraceback(stack))
                return
            if child.has_ended:
                ending = self._crashed(child, time.monotonic())
                raise TargetError(
                    f"TARGET {self._spec}: the interpreter ended while it was being loaded: {ending.cause}",
                    why=_last_known(ending.at, ending.output),
                )
            num_ticks += 1
            if num_ticks % MEMORY_TICKS == 0 and (taken := child.memory) > self._memory_limit:
                place, _ = trim_dump(child.dump_stacks())
                raise TargetError(
                    f"TARGET {self._spec}: {_too_much(taken, self._memory_limit)}, while it was being loaded",
                    why=_last_known(place, child.output),
                )
            if self._budget.left_s <= 0:
                place, _ = trim_dump(child.dump_stacks())
                raise TargetError(
                    f"TARGET {self._spec} was not loaded within {self._budget.seconds:g} s",
                    why=_last_known(place, child.output),
                    do='put what trains under  if __name__ == "__main__":  so that the file can be imported',
                )

    def _watch(self, child: Child, receive: Callable[[Any], None], started: float) -> Ending | None:
        """Receives records until the experiment ends; None if the child ended on its own."""
        num_begun, since, num_late, num_ticks = child.recorder.num_begun, started, 0, 0
        while True:
            is_spent = self._budget.left_s <= 0
            event = child.next_event(0.0 if is_spent else TICK_S)
            now = time.monotonic()
            if event is not None:
                kind, value = event
                if kind != "record":
                    return _said(kind, value, now - started, child.output)
                receive(value)
                num_late += is_spent
                # Deadlines are looked at when all that was finished has been heard, or a child that talks on and on
                # has had its due.
                if num_late < MAX_LATE:
                    continue
            elif child.has_ended:
                return None
            if child.recorder.num_begun != num_begun:
                num_begun, since = child.recorder.num_begun, now
            limit = self._per_sample_s * (FIRST_SAMPLE_FACTOR if child.recorder.num_rows <= 1 else 1.0)
            num_ticks += event is None
            if num_ticks % MEMORY_TICKS == 1 and (taken := child.memory) > self._memory_limit:
                ending = self._interrupted(child, "crashed", now - started, now - since)
                return dataclasses.replace(ending, cause=_too_much(taken, self._memory_limit))
            is_stuck = child.recorder.is_busy and now - since > limit
            if is_spent:
                return self._interrupted(child, "over-budget", now - started, now - since)
            if is_stuck:
                ending = self._interrupted(child, "stuck", now - started, now - since)
                # If it went on while its stacks were written, it was slow and not stuck.
                if child.recorder.is_busy and child.recorder.num_begun == num_begun:
                    return ending

    @staticmethod
    def _interrupted(
        child: Child, outcome: Literal["stuck", "crashed", "over-budget"], wall_s: float, mark_s: float
    ) -> Ending:
        mark = child.recorder.read()
        place, stack = trim_dump(child.dump_stacks())
        return Ending(
            outcome=outcome, wall_s=wall_s, mark=mark, mark_s=mark_s, at=place, stack=stack or None, output=child.output
        )

    @staticmethod
    def _crashed(child: Child, started: float) -> Ending:
        mark = child.recorder.read()
        place, stack = trim_dump(child.dump)
        return Ending(
            outcome="crashed",
            wall_s=time.monotonic() - started,
            mark=mark,
            cause=_name_end(child.exit_code),
            at=place,
            stack=stack or None,
            output=child.output,
        )


def _said(kind: str, value: Any, wall_s: float, output: str) -> Ending:
    """The ending that the child itself told."""
    if kind == "done":
        return Ending(outcome="done", wall_s=wall_s, output=output)
    cause, at, stack = value
    return Ending(outcome="failed", wall_s=wall_s, cause=cause, at=at, stack=stack, output=output)


def _too_much(taken: int, limit: float) -> str:
    return f"ended by headrace: it held {taken / 2**30:.1f} GiB, {limit / 2**30:.1f} GiB is {MEMORY_SHARE:.0%} of what was free"


def _name_end(exit_code: int) -> str:
    """SIGSEGV, SIGKILL, ... or the exit status."""
    if exit_code >= 0:
        return f"exit status {exit_code}"
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def _last_known(place: str | None, output: str) -> str | None:
    """Where a child stood when it ended, and the last lines that the user's code printed."""
    lines = output.strip().splitlines()[-5:]
    told = [f"it stood at {place}"] if place else []
    told += ["its last output was:", *(f"  {line}" for line in lines)] if lines else []
    return "\n         ".join(told) or None
