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
from headrace.doctor.timing.watched import watched_step
from headrace.errors import ConfigurationError, TargetError

__all__ = ["Consumer", "Emulated", "GivenStep", "Step", "Touch", "TrainStep", "chosen", "held"]

Step = Callable[[Any], Any]
"""Takes one batch as the loader delivers it."""
PAGE = 4096
NUM_CHECKED = 512
"""Turns of a busy loop between two looks at the clock: some ten microseconds."""


class Consumer(Protocol):
    """Plain values that pickle; `check` and `start` are called in the child."""

    @property
    def name(self) -> str:
        """What stands in a report: `train.py:train_step`, `20 ms a step, busy (emulated)`."""

    @property
    def is_emulated(self) -> bool:
        """True: nobody trains; a report says so beside every number that rests on it."""

    def check(self) -> None:
        """Looks whether there is a step, without calling anything of the user's.

        Raises:
            TargetError: there is none.
        """

    def start(self) -> Step:
        """Makes the step: loads what has to be loaded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Touch:
    """Reads a byte of each page of each batch, and drops it: what any consumer does at least."""

    name: str = "no training step"
    is_emulated: bool = False

    def check(self) -> None:
        """Nothing to check."""

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
    script: str = ""
    """Where the time was watched; empty: it was said."""

    @property
    def name(self) -> str:
        """With its kind."""
        how = "busy" if self.is_busy else "asleep"
        if self.script:
            return f"{1e3 * self.step_s:.3g} ms a step as watched in {self.script}, {how} (emulated)"
        return f"{1e3 * self.step_s:g} ms a step, {how} (emulated)"

    @property
    def is_emulated(self) -> bool:
        """Always."""
        return True

    def check(self) -> None:
        """Nothing to check."""

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

    def check(self) -> None:
        """Loads it and looks at its signature.

        Raises:
            TargetError: it cannot be loaded, or takes neither nothing nor one batch.
        """
        _check_step(self._loaded(), self.spec)

    def start(self) -> Step:
        """Loads it.

        Raises:
            TargetError: as `check`; or what it returned is no step.
        """
        return _as_step(self._loaded(), self.spec)

    def _loaded(self) -> Any:
        try:
            return load_attribute(self.spec, again=False)
        except TargetError as error:
            said = error.what
            for prefix in ("TARGET: ", f"TARGET {self.spec}: ", "TARGET "):  # what a message of the loader begins with
                said = said.removeprefix(prefix)
            raise TargetError(
                f"there is no training step {self.spec}: {said}", why=error.why, do=_EXPECTED
            ) from error.__cause__


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

    def check(self) -> None:
        """Looks at its signature.

        Raises:
            TargetError: as `start`, but for what it returns.
        """
        _check_step(self._held(), self.name)

    def start(self) -> Step:
        """Takes it from what the fork inherited.

        Raises:
            TargetError: this process is no fork of the one that held it, or was forked at another time; or it is no
                step.
        """
        return _as_step(self._held(), self.name)

    def _held(self) -> Callable[..., Any]:
        if self.key not in _HELD:
            raise TargetError(f"{self.name} is a function of another process, and this one is no fork of it")
        return _HELD[self.key]


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
    watched: str | None = None,
    is_busy: bool = True,
) -> Iterator[Consumer | None]:
    """Yields the consumer that was asked for; None: none was.

    Args:
        given: A function of this process, held while the block lasts.
        train: A function of a file.
        step_ms: Milliseconds of a step that is emulated.
        watched: A report of `headrace watch` that says how many.
        is_busy: How it passes them.

    Raises:
        ConfigurationError: more than one was asked for, or the report says nothing of a step.
    """
    ways = {"step": given, "train": train, "step_ms": step_ms, "watched": watched}
    asked = [name for name, way in ways.items() if way is not None]
    if len(asked) > 1:
        raise ConfigurationError(f"{' and '.join(asked)} exclude each other: one training step, real or emulated")
    if given is not None:
        with held(given) as consumer:
            yield consumer
    elif train is not None:
        yield TrainStep(train)
    elif watched is not None:
        seen = watched_step(watched)
        yield Emulated(step_s=seen.step_s, is_busy=is_busy, script=seen.script)
    else:
        yield None if step_ms is None else Emulated(step_s=step_ms / 1e3, is_busy=is_busy)


def _as_step(given: Any, name: str) -> Step:
    """A step, or what a function without parameters returns."""
    if _check_step(given, name) == 0:
        made = given()
        if not callable(made):
            raise TargetError(f"{name}() takes no batch and returned {_told(made)}, no function", do=_EXPECTED)
        given, name = made, f"what {name}() returned"
        if _check_step(given, name) == 0:
            raise TargetError(f"{name} takes no argument; a step takes one, the batch", do=_EXPECTED)
    step: Step = given
    return step


def _check_step(given: Any, name: str) -> int | None:
    """Returns how many arguments it needs, none or one; None: it does not say."""
    if not callable(given):
        raise TargetError(f"{name} is {_told(given)}, no function that takes a batch", do=_EXPECTED)
    num_needed = _num_needed(given, name)
    if num_needed not in {0, 1, None}:
        raise TargetError(f"{name} takes {num_needed} arguments; a step takes one, the batch", do=_EXPECTED)
    return num_needed


_EXPECTED = "def train_step(batch): ...   or   def make_step(): model = ...; return lambda batch: ..."


def _told(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiouAEIOU" else f"a {kind}"


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
