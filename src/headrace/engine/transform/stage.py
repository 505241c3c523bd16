"""Stage: a user's function with a name, a place in a file, and a generator if it asks for one."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from headrace.engine.transform.rng import sample_generator
from headrace.errors import ConfigurationError, SampleId, Where

__all__ = ["Stage"]


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One step from record to sample: `function(sample)`, or `function(sample, rng=generator)`."""

    name: str
    """Unique within its plan. Part of the key of random stages: a stage renamed is a stage with other draws."""
    function: Callable[..., Any]
    takes_rng: bool = False
    """True if the function has a parameter named `rng`."""
    location: str | None = dataclasses.field(default=None, compare=False)
    """`file:line` of the user's function; None where there is no Python source."""

    @classmethod
    def of(cls, function: Callable[..., Any], name: str | None = None) -> Stage:
        """Returns the stage made of a function.

        Args:
            function: Takes the sample as its one argument, and `rng` as well if it has a parameter of that name: then
                it gets a `numpy.random.Generator` made for this seed, epoch, sample and stage.
            name: Default: the function's own name, or the class name of a callable object.

        Raises:
            ConfigurationError: not callable, or cannot be called with one sample.
        """
        if not callable(function):
            raise ConfigurationError(
                f"a stage must be callable, and {function!r} of type {type(function).__name__} is not",
                do="give a function of one sample: def decode(record): ...",
            )
        stage = cls(name or _name_of(function), function, _takes_rng(function), _location_of(function))
        _refuse_misfit(stage)
        return stage

    def apply(self, sample: Any, *, seed: int, epoch: int, sample_id: SampleId) -> Any:
        """Returns what the function makes of the sample; its exceptions pass through untouched."""
        if not self.takes_rng:
            return self.function(sample)
        return self.function(sample, rng=sample_generator(seed, epoch, sample_id, self.name))

    def __str__(self) -> str:
        return self.name if self.location is None else f"{self.name} ({self.location})"


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function; None for some builtins and classes written in C."""
    try:
        signature = inspect.signature(function)
        kinds = {parameter.kind for parameter in signature.parameters.values()}
        forward = getattr(function, "forward", None)
        if forward is not None and kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            return inspect.signature(forward)  # a torch module: its __call__ passes everything on
    except (TypeError, ValueError):
        return None
    return signature


def _takes_rng(function: Callable[..., Any]) -> bool:
    signature = _signature(function)
    return signature is not None and "rng" in signature.parameters


def _refuse_misfit(stage: Stage) -> None:
    """Raises ConfigurationError if the call that `apply` makes cannot work, as far as the signature tells."""
    where = Where(stage=str(stage))
    if isinstance(stage.function, functools.partial) and "rng" in stage.function.keywords:
        raise ConfigurationError(
            f"stage {stage.name!r} has its `rng` bound already, by functools.partial",
            where=where,
            why="one generator for all samples depends on which worker runs them, and in which order",
            do="leave `rng` out of the partial: every sample gets a generator of its own",
        )
    signature = _signature(stage.function)
    if signature is None:
        return
    call = "function(sample, rng=...)" if stage.takes_rng else "function(sample)"
    try:
        signature.bind(None, **({"rng": None} if stage.takes_rng else {}))
    except TypeError as error:
        raise ConfigurationError(
            f"stage {stage.name!r} cannot be called as {call}: {error}",
            where=where,
            why="a stage gets the whole sample as its one argument, whatever its parts",
            do="def stage(sample): image, label = sample; ...    # or functools.partial for further arguments",
        ) from error


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__).strip("<>") or "stage"


def _location_of(function: Callable[..., Any]) -> str | None:
    """`file:line` where the code starts; the file relative to the working directory if it lies below it."""
    code = _code_of(function)
    if code is None:
        return None
    path = Path(code.co_filename)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return f"{path}:{code.co_firstlineno}"


def _code_of(function: Any) -> CodeType | None:
    """The code that runs: behind partials, decorators, methods and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__") and not inspect.isroutine(function):
        # A class runs its __init__; an object its __call__, a torch module its forward.
        kind = function if isinstance(function, type) else type(function)
        name = "__init__" if isinstance(function, type) else "forward" if hasattr(kind, "forward") else "__call__"
        function = getattr(kind, name, None)
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None
