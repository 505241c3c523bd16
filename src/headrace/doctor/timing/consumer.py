"""Who takes the batches: nobody in particular, a clock, or the user's own training step."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from headrace.contract.view import as_array, flatten
from headrace.doctor.subject.target import load_attribute
from headrace.errors import TargetError

__all__ = ["Consumer", "Emulated", "GivenStep", "Step", "Touch", "TrainStep", "held"]

Step = Callable[[Any], Any]
"""Takes one batch as the loader delivers it."""
PAGE = 4096
NUM_CHECKED = 4096
"""Turns of a busy loop between two looks at the clock: some tens of microseconds."""


class Consumer(Protocol):
    """Plain values that pickle; `start` is called in the child."""

    @property
    def name(self) -> str:
        """What stands in a report: `train.py:train_step`, `20 ms a step, busy (emulated)`."""

    @property
    def is_emulated(self) -> bool:
        """True: nobody trains; a report says so beside every number that rests on it."""

    def start(self) -> Step:
        """Makes the step: loads what has to be loaded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Touch:
    """Reads a byte of each page of each batch, and drops it: what any consumer does at least."""

    name: str = "no training step"
    is_emulated: bool = False

    def start(self) -> Step:
        """Nothing to make."""
        return touch


def touch(batch: Any) -> None:
    """Reads a byte of each page, so that what is mapped is also there."""
    for _, value in flatten(batch):
        array = as_array(value)
        if array is not None and array.nbytes and array.flags.c_contiguous:
            array.reshape(-1).view("uint8")[::PAGE].max()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Emulated:
    """Takes a given time for each batch."""

    step_s: float
    """Seconds, above 0."""
    is_busy: bool = True
    """True: it computes all the while, as a trainer that feeds a device does much of the time; False: it sleeps, which
    leaves core and interpreter to others and flatters a loader."""

    @property
    def name(self) -> str:
        """With its kind."""
        return f"{1e3 * self.step_s:g} ms a step, {'busy' if self.is_busy else 'asleep'} (emulated)"

    @property
    def is_emulated(self) -> bool:
        """Always."""
        return True

    def start(self) -> Step:
        """Nothing to make."""
        return functools.partial(_spin if self.is_busy else _sleep, self.step_s)


def _spin(step_s: float, batch: Any) -> None:
    touch(batch)
    end = time.perf_counter() + step_s
    while time.perf_counter() < end:
        for _ in range(NUM_CHECKED):
            pass


def _sleep(step_s: float, batch: Any) -> None:
    touch(batch)
    time.sleep(step_s)


@dataclasses.dataclass(frozen=True, slots=True)
class TrainStep:
    """A function of a file: `train.py:train_step`.

    It takes a batch; or it takes nothing, makes model and optimizer, and returns the function that takes a batch.
    """

    spec: str

    @property
    def name(self) -> str:
        """As it was typed."""
        return self.spec

    @property
    def is_emulated(self) -> bool:
        """Never."""
        return False

    def start(self) -> Step:
        """Loads it.

        Raises:
            TargetError: it cannot be loaded, or takes neither nothing nor one batch.
        """
        return _as_step(load_attribute(self.spec), self.spec)


_HELD: dict[int, Callable[..., Any]] = {}
"""Functions of this process, for its forks."""


@contextlib.contextmanager
def held(step: Callable[..., Any]) -> Iterator[GivenStep]:
    """Holds a function of this process for children that are forks of it."""
    consumer = GivenStep(id(step), getattr(step, "__qualname__", type(step).__name__))
    _HELD[consumer.key] = step
    try:
        yield consumer
    finally:
        del _HELD[consumer.key]


@dataclasses.dataclass(frozen=True, slots=True)
class GivenStep:
    """A function of the calling process, which need not pickle: only forks of it can run it."""

    key: int
    name: str

    @property
    def is_emulated(self) -> bool:
        """Never."""
        return False

    def start(self) -> Step:
        """Takes it from what the fork inherited."""
        return _as_step(_HELD[self.key], self.name)


def _as_step(given: Any, name: str) -> Step:
    """A step, or what a function without parameters returns."""
    if not callable(given):
        raise TargetError(f"{name} is a {type(given).__name__}, no function that takes a batch", do=_EXPECTED)
    num_needed = _num_needed(given)
    if num_needed == 0:
        made = given()
        if not callable(made):
            raise TargetError(f"{name}() takes no batch and returned {type(made).__name__}, no function", do=_EXPECTED)
        given, num_needed = made, _num_needed(made)
    if num_needed not in {1, None}:
        raise TargetError(f"{name} takes {num_needed} arguments; a step takes one, the batch", do=_EXPECTED)
    step: Step = given
    return step


_EXPECTED = "def train_step(batch): ...   or   def make_step(): model = ...; return lambda batch: ..."


def _num_needed(function: Callable[..., Any]) -> int | None:
    """Positional arguments that it cannot do without; one of `*batch` counts as one; None: it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    num_needed = sum(one.default is one.empty for one in positional)
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return 1 if num_needed == 0 and takes_any else num_needed
