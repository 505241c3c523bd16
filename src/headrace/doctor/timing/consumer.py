"""Who takes the batches: nobody in particular, a clock, or the user's own training step."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from headrace.contract.view import flatten
from headrace.doctor.subject.target import load_attribute
from headrace.errors import TargetError

__all__ = ["Consumer", "Emulated", "GivenStep", "Step", "Touch", "TrainStep", "chosen", "held"]

Step = Callable[[Any], Any]
"""Takes one batch as the loader delivers it."""
PAGE = 4096
NUM_CHECKED = 512
"""Turns of a busy loop between two looks at the clock: some ten microseconds."""


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
    """Reads a value of each page, so that what is mapped is also there. What is on a device is there already."""
    for _, value in flatten(batch):
        if isinstance(value, np.ndarray):
            if value.nbytes and value.flags.c_contiguous and not value.dtype.hasobject:
                value.reshape(-1)[:: max(1, PAGE // value.itemsize)].copy()
        elif hasattr(value, "data_ptr"):
            _touch_tensor(value)


def _touch_tensor(tensor: Any) -> None:
    """By a copy of few values, which every type of number can do; no conversion, which would copy all of them."""
    if tensor.device.type != "cpu" or tensor.is_nested or str(tensor.layout) != "torch.strided":
        return
    if tensor.numel() and tensor.is_contiguous():
        tensor.detach().view(-1)[:: max(1, PAGE // tensor.element_size())].clone()


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
        time.sleep(0)  # lets other threads have the interpreter, as each operation of a real step does


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
        return _as_step(load_attribute(self.spec, again=False), self.spec)


_HELD: dict[int, Callable[..., Any]] = {}
"""Functions of this process, for its forks."""
_KEYS = itertools.count()


@contextlib.contextmanager
def held(step: Callable[..., Any]) -> Iterator[GivenStep]:
    """Holds a function of this process for children that are forks of it."""
    consumer = GivenStep(next(_KEYS), _name_of(step))
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
        """Takes it from what the fork inherited.

        Raises:
            TargetError: this process is no fork of the one that held it, or was forked at another time; or it is no
                step.
        """
        if self.key not in _HELD:
            raise TargetError(f"{self.name} is a function of another process, and this one is no fork of it")
        return _as_step(_HELD[self.key], self.name)


def _name_of(step: Any) -> str:
    """What a user calls it: the function within a partial; the class of a module."""
    inner = step.func if isinstance(step, functools.partial) else step
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    return str(name).rpartition("<locals>.")[2]


@contextlib.contextmanager
def chosen(
    *,
    given: Callable[..., Any] | None = None,
    train: str | None = None,
    step_ms: float | None = None,
    is_busy: bool = True,
) -> Iterator[Consumer | None]:
    """Yields the consumer that was asked for; None: none was.

    Args:
        given: A function of this process, held while the block lasts.
        train: A function of a file.
        step_ms: Milliseconds of a step that is emulated.
        is_busy: How it passes them.
    """
    if given is not None:
        with held(given) as consumer:
            yield consumer
    elif train is not None:
        yield TrainStep(train)
    else:
        yield None if step_ms is None else Emulated(step_s=step_ms / 1e3, is_busy=is_busy)


def _as_step(given: Any, name: str) -> Step:
    """A step, or what a function without parameters returns."""
    if not callable(given):
        raise TargetError(f"{name} is a {type(given).__name__}, no function that takes a batch", do=_EXPECTED)
    num_needed = _num_needed(given, name)
    if num_needed == 0:
        made = given()
        if not callable(made):
            raise TargetError(f"{name}() takes no batch and returned {_told(made)}, no function", do=_EXPECTED)
        given, name = made, f"what {name}() returned"
        num_needed = _num_needed(given, name)
    if num_needed not in {1, None}:
        counted = f"{num_needed} arguments" if num_needed else "no argument"
        raise TargetError(f"{name} takes {counted}; a step takes one, the batch", do=_EXPECTED)
    step: Step = given
    return step


_EXPECTED = "def train_step(batch): ...   or   def make_step(): model = ...; return lambda batch: ..."


def _told(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _num_needed(function: Callable[..., Any], name: str) -> int | None:
    """Positional arguments that it cannot do without; one of `*batch` counts as one; None: it does not say.

    Raises:
        TargetError: it needs arguments by name, which nobody gives it.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if by_name:
        raise TargetError(f"{name} needs {', '.join(by_name)} by name; a step gets the batch alone", do=_EXPECTED)
    positional = [one for one in parameters if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    num_needed = sum(one.default is one.empty for one in positional)
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return 1 if num_needed == 0 and takes_any else num_needed
