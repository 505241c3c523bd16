"""Counts the samples of a batch, many thousand times a second: where to look is found out once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["SampleCounter"]

MAX_DEPTH = 4


class SampleCounter:
    """Counts the samples of batches of one loader."""

    def __init__(self, *, is_batched: bool, batch_size: int | None) -> None:
        """`batch_size`: of whole batches; None: not known."""
        self._is_batched, self._batch_size = is_batched, batch_size
        self._count: Callable[[Any], int] | None = None

    def __call__(self, batch: Any) -> int:
        """Returns how many there are; where nothing in the batch tells, the batch size."""
        if not self._is_batched:
            return 1
        if self._count is not None:
            try:
                return self._count(batch)
            except Exception:  # this batch is built in another way
                self._count = None
        path = _find(batch, self._batch_size)
        if path is None:
            return self._batch_size or 1
        self._count = count = _counter(*path)
        return count(batch)


def _counter(keys: tuple[Any, ...], end: str) -> Callable[[Any], int]:
    def count(batch: Any) -> int:
        for key in keys:
            batch = getattr(batch, key.name) if isinstance(key, _Field) else batch[key]
        return len(batch) if end == "length" else int(getattr(batch, end))

    return count


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """An attribute of a dataclass."""

    name: str


def _find(batch: Any, size: int | None, depth: int = 0) -> tuple[tuple[Any, ...], str] | None:
    """Where the samples are counted: keys to an array or a list, and what to ask of it; None: nowhere."""
    if _rank(batch):
        return (), "length"
    if isinstance(getattr(batch, "num_graphs", None), int):  # of graph batches, whose arrays count nodes
        return (), "num_graphs"
    if isinstance(batch, list) and batch and _is_list_of_samples(batch, size):
        return (), "length"
    parts = list(_parts(batch))
    for key, part in parts:
        if _rank(part):
            return (key,), "length"
    if depth < MAX_DEPTH:
        for key, part in parts:
            if not isinstance(part, (list, tuple)) and (inner := _find(part, size, depth + 1)):
                return (key, *inner[0]), inner[1]
    return next((((key,), "length") for key, part in parts if isinstance(part, (list, tuple))), None)


def _rank(value: Any) -> int:
    """Number of axes; 0 for what is no array."""
    shape = getattr(value, "shape", None)
    try:
        return 0 if shape is None else len(shape)
    except TypeError:
        return 0


def _is_list_of_samples(batch: list[Any], size: int | None) -> bool:
    """True for a list of samples that nobody joined; [images, labels] is a batch of two fields."""
    if all(isinstance(part, (Mapping, tuple)) for part in batch):
        return True
    if not any(_rank(part) or isinstance(part, list) for part in batch):
        return True
    return size == len(batch) and not any(_rank(part) and len(part) == size for part in batch)


def _parts(batch: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(batch, Mapping):
        yield from batch.items()
    elif isinstance(batch, (list, tuple)):
        yield from enumerate(batch)
    elif dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        for field in dataclasses.fields(batch):
            yield _Field(field.name), getattr(batch, field.name)
