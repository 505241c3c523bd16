"""What decides the order of a loader: its batch sampler and samplers, looked through from the outside in."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import pathlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Literal

from headrace.doctor.stacks import is_user_code

__all__ = [
    "RankPlace",
    "chain",
    "decider",
    "draws",
    "generator_states",
    "rank_place",
    "set_epoch_holders",
    "told_class",
    "told_place",
]

_INNER = ("batch_sampler", "sampler", "base_sampler", "inner_sampler", "_sampler", "_batch_sampler")
"""Attributes under which samplers keep the samplers that they wrap."""
_INNER_OR_DATA = ("data_source", "dataset")
"""Attributes under which they keep a sampler or the data set: torch's own name for both."""
_MAX_DEPTH = 6
_PLAIN = {"BatchSampler", "SequentialSampler", "RandomSampler"}
_DRAWING = {
    "randperm", "permutation", "permuted", "shuffle", "sample", "choice", "choices", "randint", "rand", "random",
    "multinomial", "random_", "default_rng", "RandomState", "Generator", "Random", "manual_seed", "integers", "uniform",
}  # fmt: skip
"""Names of functions that draw random numbers, in Python, numpy and torch."""


_ORDERING = {
    "randperm",
    "permutation",
    "permuted",
    "shuffle",
    "sample",
    "choice",
    "choices",
    "multinomial",
    "randrange",
}


def chain(loader: Any) -> Iterator[Any]:
    """Yields the samplers of a loader from the outside in; the placeholder beside a batch sampler is left out."""
    first = getattr(loader, "batch_sampler", None)
    pending = [getattr(loader, "sampler", None) if first is None else first]
    seen: set[int] = set()
    while pending and len(seen) < _MAX_DEPTH:
        one = pending.pop(0)
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        pending += [_held(one, name) for name in _INNER]
        pending += [held for name in _INNER_OR_DATA if _is_sampler(held := _held(one, name))]


def _is_sampler(value: Any) -> bool:
    """True for what yields indices; a data set that a sampler knows has samples to give, and is none."""
    return hasattr(type(value), "__iter__") and not hasattr(type(value), "__getitem__")


def _held(holder: Any, name: str) -> Any:
    return getattr(holder, "__dict__", {}).get(name)


def decider(loader: Any) -> Any:
    """Returns the outermost sampler that is not torch's plain one, else the innermost; None: the loader has none."""
    found = list(chain(loader))
    special = (one for one in found if type(one).__name__ not in _PLAIN or not _is_torch(one))
    return next(special, found[-1] if found else None)


def _is_torch(value: Any) -> bool:
    return type(value).__module__.startswith("torch.utils.data")


def told_class(value: Any) -> str:
    """The name of its class."""
    return type(value).__name__


def told_place(value: Any) -> str | None:
    """`file:line` of its class, if it is the user's own."""
    try:
        path = inspect.getsourcefile(type(value))
        line = inspect.getsourcelines(type(value))[1]
    except (OSError, TypeError):
        return None
    return f"{pathlib.Path(path).name}:{line}" if path and is_user_code(path) else None


_RANKED: tuple[Literal["each-pass", "once", "unknown"], ...] = ("each-pass", "once", "unknown")


def draws(value: Any, *, only_orders: bool = False) -> Literal["each-pass", "once", "never", "unknown"]:
    """By the code of a sampler or stream: when are random numbers drawn?

    Args:
        value: A sampler, or the data set of a stream.
        only_orders: True: only functions that choose or order count, for a stream whose random numbers may be meant
            for its samples.
    """
    drawing = _DRAWING & _ORDERING if only_orders else _DRAWING
    if _is_torch(value):
        if type(value).__name__ in {"SequentialSampler", "BatchSampler"}:
            return "never"
        if type(value).__name__ == "ChainDataset":
            inner = {draws(one, only_orders=only_orders) for one in value.datasets}
            return next((said for said in _RANKED if said in inner), "never")
        return "each-pass" if getattr(value, "shuffle", True) else "never"
    kind = type(value)
    if kind.__module__ == "builtins":
        return "unknown"
    if _names(kind, "__iter__") & drawing:
        return "each-pass"
    return "once" if _names(kind, "__init__") & drawing else "never"


def _names(kind: type, method: str) -> set[str]:
    """Names used by a method, and by the methods of the class that it calls."""
    names: set[str] = set()
    pending, seen = [method], set[str]()
    while pending:
        one = pending.pop()
        seen.add(one)
        function = getattr(kind, one, None)
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code is None:
            continue
        used = _used(code)
        names |= used
        pending += [name for name in used if name not in seen and name in vars(kind) and not name.startswith("__")]
    return names


def _used(code: CodeType) -> set[str]:
    """Names that a function and those inside it use."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*map(_used, inner))


def set_epoch_holders(loader: Any) -> list[Any]:
    """The objects of a loader that can be told the epoch, from the outside in: samplers, then data sets."""
    samplers = [one for one in chain(loader) if callable(getattr(one, "set_epoch", None))]
    dataset = getattr(loader, "dataset", None)
    return samplers + ([dataset] if callable(getattr(dataset, "set_epoch", None)) else [])


@dataclasses.dataclass(frozen=True, slots=True)
class RankPlace:
    """A sampler that deals samples out, and where it keeps its rank."""

    holder: Any
    size_name: str
    rank_name: str

    @property
    def world_size(self) -> int:
        """Ranks that it deals out to."""
        return int(getattr(self.holder, self.size_name))

    @property
    def rank(self) -> int:
        """The rank that it serves."""
        return int(getattr(self.holder, self.rank_name))

    @property
    def reads_rank_late(self) -> bool:
        """True if a pass looks at the rank: then a copy with another rank serves that one."""
        return self.rank_name in _names(type(self.holder), "__iter__")


def generator_states(loader: Any) -> Callable[[], None]:
    """Remembers the states of the generators that samplers hold; call what is returned to set them back."""
    setters: list[Callable[[], None]] = []
    for holder in chain(loader):
        for value in list(getattr(holder, "__dict__", {}).values()):
            if hasattr(value, "get_state") and hasattr(value, "set_state"):  # torch.Generator, numpy's RandomState
                setters.append(functools.partial(value.set_state, value.get_state()))
            elif hasattr(value, "bit_generator"):  # numpy's Generator
                setters.append(functools.partial(setattr, value.bit_generator, "state", value.bit_generator.state))
            elif hasattr(value, "getstate") and hasattr(value, "setstate"):  # random.Random
                setters.append(functools.partial(value.setstate, value.getstate()))

    def set_back() -> None:
        for setter in setters:
            setter()

    return set_back


_PAIRS = (
    ("num_replicas", "rank"),
    ("world_size", "rank"),
    ("num_processes", "process_index"),
    ("_world_size", "_rank"),
    ("_num_replicas", "_rank"),
    ("num_ranks", "rank"),
    ("world", "rank"),
)
"""Pairs of attributes by which torch, accelerate and others name the number of ranks and the rank."""


def rank_place(loader: Any) -> RankPlace | None:
    """Finds what deals samples out to ranks; None: nothing that says so."""
    holders = [*chain(loader), getattr(loader, "dataset", None)]
    for holder in holders:
        for size_name, rank_name in _PAIRS:
            size, rank = getattr(holder, size_name, None), getattr(holder, rank_name, None)
            if isinstance(size, int) and isinstance(rank, int) and not isinstance(size, bool):
                return RankPlace(holder, size_name, rank_name)
    return None
