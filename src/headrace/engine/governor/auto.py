"""The runner of `num_workers="auto"`: runs under one setting after another, as the governor decides.

A change of setting ends the stretch of orders: those in flight are delivered, then others go on with the next order.
So whatever is decided, the results are those of the plain loop.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Iterable
from typing import Any, ClassVar, TypeVar

from headrace.engine.governor.feed import Feed
from headrace.engine.governor.governor import SLEEPY_SHARE, WAIT_SHARE, Governor, Limits, Observation, Setting
from headrace.engine.governor.lock_probe import speedup_by_threads
from headrace.engine.governor.meter import Meter
from headrace.engine.governor.watched import WatchedTask
from headrace.engine.run import InlineRunner, no_mark
from headrace.engine.transform import global_generators as generators
from headrace.errors import ConfigurationError, GlobalRandomness
from headrace.machine import thread_awake_s, usable_cores, usable_memory
from headrace.observe import Clock, Decision, monotonic
from headrace.protocols import Runner, Task

__all__ = ["AutoRunner"]

OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")

_MEMORY_SHARE = 0.25
"""Of the memory that is free, for batches in flight, if nothing is said."""
_LOOK_EVERY_S = 0.008
"""Seconds after which a batch is measured again, once it is decided that the caller makes them: measuring takes 0.05 ms."""
_MOST_SKIPPED = 255
_SPEEDUP = 1.3
"""Two threads that do less than this hold the interpreter lock: processes are needed."""


class AutoRunner:
    """Executes in the caller, threads, a host process or processes: whichever lets the loop not wait at least cost.

    Args:
        make: Returns a runner for a setting with workers.
        memory_bytes: Budget for all batches that exist at once; None = a quarter of what is free.
        governor: Who decides; None = one with the limits of this machine.
        clock: Seconds.

    A task that may also run in threads has a method `for_threads()`, which returns it in the form for that, or None if
    it must not; and `runs_user_code`. Other tasks get processes.
    """

    name: ClassVar[str] = "auto"

    def __init__(
        self,
        make: Callable[[Setting], Runner],
        *,
        memory_bytes: int | None = None,
        governor: Governor | None = None,
        clock: Clock = monotonic,
    ) -> None:
        self._make = make
        if governor is None:
            memory_bytes = int(_MEMORY_SHARE * usable_memory()) if memory_bytes is None else memory_bytes
            governor = Governor(Limits(num_cores=usable_cores(), memory_bytes=memory_bytes, runners=("processes",)))
            self._has_learned = False
        else:
            self._has_learned = True
        self._governor = governor
        self._clock = clock
        self._since_s: float | None = None
        self._decisions: list[Decision] = []
        self._meter: tuple[Setting, Meter] | None = None
        self._hired: tuple[Setting, Runner] | None = None
        # One form of a task for all its runs: persistent workers serve the same object only.
        self._forms: tuple[Task[Any, Any], Task[Any, Any] | None] | None = None

    @property
    def setting(self) -> Setting:
        """Who executes now."""
        return self._governor.setting

    @property
    def num_workers(self) -> int:
        """Workers that execute now; 0 = the caller."""
        return self.setting.num_workers

    @property
    def max_in_flight(self) -> int:
        """Orders that may be taken ahead now."""
        return self.setting.max_in_flight

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided so far, and why."""
        return tuple(self._decisions)

    def run(self, task: Task[OrderT, ResultT], orders: Iterable[OrderT]) -> Generator[ResultT, None, None]:
        """Yields the result of each order, in order."""
        self._since_s = self._clock() if self._since_s is None else self._since_s
        feed = Feed(orders)
        has_begun = False
        while not (has_begun and feed.is_done):
            has_begun = True  # without orders, the task is still opened and closed once
            is_at_rest = self._governor.is_settled and self.num_workers == 0
            yield from self._at_rest(task, feed) if is_at_rest else self._stretch(task, feed)

    def close(self) -> None:
        """Ends idle workers. May be called twice.

        Those that were tried go home at once: a forked one makes the caller copy each page that it writes to.
        """
        if self._hired is not None:
            self._hired[1].close()

    def _stretch(self, task: Task[OrderT, ResultT], feed: Feed[OrderT]) -> Generator[ResultT, None, None]:
        """Runs under the setting in force, until it changes or the orders end."""
        setting = self.setting
        num_answered = 0
        meter = self._meter_of(setting)
        try:
            results = self._results(setting, task, feed)
            with contextlib.closing(results), contextlib.closing(meter.measure(results)) as measured:
                for result in measured:
                    feed.answered()
                    num_answered += 1
                    if self.setting == setting:
                        self._consider(meter, task, feed)
                        if self.setting != setting:
                            feed.end_stretch()
                    yield result
                    del result  # the consumer's memory, not ours
        except GlobalRandomness as error:
            if setting.runner not in {"threads", "host"}:
                raise
            self._refuse(setting, error.what, feed)
        except ConfigurationError as error:
            if setting.num_workers == 0 or num_answered:
                raise
            self._refuse(setting, error.what, feed)

    def _at_rest(self, task: Task[OrderT, ResultT], feed: Feed[OrderT]) -> Generator[ResultT, None, None]:
        """Runs in the caller, where the governor has settled: the plain loop, looking up at one batch in so many."""
        setting = self.setting
        self.close()
        meter = self._meter_of(setting)
        num_skipped = 0
        task.open(None, 0)
        try:
            for order in feed.in_turn():
                if num_skipped:
                    num_skipped -= 1
                    yield task.run(order, no_mark)
                    continue
                awake_s, asked_s = thread_awake_s(), self._clock()
                result = task.run(order, no_mark)
                wait_s, awake_s = self._clock() - asked_s, thread_awake_s() - awake_s
                meter.sample(wait_s, awake_s, result)
                began_s = self._clock()
                yield result
                del result  # the consumer's memory, not ours
                step_s = self._clock() - began_s
                meter.add_step(step_s)
                num_skipped = min(int(_LOOK_EVERY_S / max(wait_s + step_s, 1e-6)), _MOST_SKIPPED)
                self._consider(meter, task, feed)
                if self.setting != setting:
                    return
        finally:
            task.close()

    def _results(self, setting: Setting, task: Task[Any, Any], feed: Feed[Any]) -> Generator[Any, None, None]:
        if setting.num_workers == 0:
            self.close()
            return InlineRunner().run(task, feed.stretch())
        if self._hired is None or self._hired[0] != setting:
            self.close()
            self._hired = setting, self._make(setting)
        form = self._form_for(setting, task)
        return self._hired[1].run(form, feed.stretch())  # type: ignore[return-value] # the protocol promises a generator

    def _form_for(self, setting: Setting, task: Task[Any, Any]) -> Task[Any, Any]:
        if setting.runner == "processes":
            return task
        shared = self._shared_form(task)
        return task if shared is None else shared

    def _shared_form(self, task: Task[Any, Any]) -> Task[Any, Any] | None:
        """The task for threads, watched if it runs code that is not ours; None if it must not run in threads."""
        if self._forms is None or self._forms[0] is not task:
            shared = _in_threads(task)
            if shared is not None and getattr(shared, "runs_user_code", True):
                shared = WatchedTask(shared)
            self._forms = task, shared
        return self._forms[1]

    def _meter_of(self, setting: Setting) -> Meter:
        if self._meter is None or self._meter[0] != setting:
            self._meter = setting, Meter(setting, self._clock)
        return self._meter[1]

    # ---- deciding ---------------------------------------------------------------------------------------------------

    def _consider(self, meter: Meter, task: Task[Any, Any], feed: Feed[Any]) -> None:
        seen = meter.round()
        if seen is None:
            return
        if self.num_workers == 0 and not self._has_learned and seen.wait_share > WAIT_SHARE:
            self._has_learned = True
            runners = self._learn(seen, task, feed)
            self._governor.limits = dataclasses.replace(self._governor.limits, runners=runners)
        self._enter(self._governor.observe(seen, self._now_s()))

    def _learn(self, seen: Observation, task: Task[Any, Any], feed: Feed[Any]) -> tuple[str, ...]:
        """Which runners suit this work, the best first; called after some batches were made in the caller."""
        shared = self._shared_form(task)
        if shared is None:
            return ("processes",)
        if not isinstance(shared, WatchedTask):
            return ("threads",)  # only our own vectorised reading: short, and not worth another process
        if seen.cpu_share is not None and seen.cpu_share < SLEEPY_SHARE:
            return ("host", "processes")
        orders = feed.peek(2)
        if self._governor.limits.num_cores < 2 or len(orders) < 2:
            return ("processes",)
        before = generators.capture()  # in this process the generators are the trainer's
        probed = WatchedTask(_in_threads(task))  # one of its own: it remembers where this process's generators stood
        probed.open(None, 0)
        try:
            speedup = speedup_by_threads(probed, orders)
        finally:
            probed.close()
            generators.restore(before)
        return ("host", "processes") if speedup is not None and speedup >= _SPEEDUP else ("processes",)

    def _refuse(self, setting: Setting, why: str, feed: Feed[Any]) -> None:
        feed.rewind()
        self._enter(self._governor.refuse(setting.runner, why, self._now_s()))

    def _enter(self, decision: Decision | None) -> None:
        if decision is not None:
            self._decisions.append(decision)

    def _now_s(self) -> float:
        return self._clock() - (self._since_s or 0.0)


def _in_threads(task: Task[Any, Any]) -> Any:
    """The task in the form for threads; None if it must not run there, or does not say."""
    for_threads = getattr(task, "for_threads", None)
    return None if for_threads is None else for_threads()
