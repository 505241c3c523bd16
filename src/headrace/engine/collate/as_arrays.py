"""Torch's rules for joining samples, followed without torch: for worker processes that nothing else makes import it.

Importing torch takes a worker that was not forked one to two seconds and over 100 MB. Samples of arrays, numbers and
text need none of it: numpy joins them, and the arrays become tensors where they arrive, which costs no copy.

Only what is certain to give the same batch is joined here: structure, types, dtypes, strides, bytes. The rest is
refused by `NotJoined`, and goes the way of `default_collate`, which also explains what does not join at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.batch_memory import batch_memory

__all__ = ["ArrivesAsTensor", "NotJoined", "join_as_arrays"]

_DTYPES = frozenset("?bBhHiIlLqefdFD")  # numpy's characters for what torch takes, arrays of "Q" not among them
_NO_SCALARS = frozenset("L")  # torch joins arrays of it, but not numpy's scalars
_NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64}


class NotJoined(Exception):
    """These samples need torch's own rules; never seen by users."""


class ArrivesAsTensor:
    """An array that becomes a tensor when it is unpickled; nobody but the sender of a batch handles it."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor, (self.array,)


def _tensor(array: npt.NDArray[Any]) -> Any:
    import torch

    return torch.from_numpy(array)


def join_as_arrays(samples: list[Any] | tuple[Any, ...]) -> Any:
    """Returns what pickles to the batch that torch's `default_collate` makes.

    Args:
        samples: B >= 1 samples of one structure: dicts, lists, tuples; arrays, numbers and text in them.

    Raises:
        NotJoined: they are not, or torch treats one of them in a way of its own.
    """
    kind = _only(map(type, samples))
    if kind is np.ndarray or kind is np.memmap:
        return ArrivesAsTensor(_stack(samples))
    if kind in _NUMBERS:
        try:
            return ArrivesAsTensor(np.array(samples, dtype=_NUMBERS[kind]))
        except OverflowError:
            raise NotJoined from None
    if kind is str or kind is bytes:
        return samples
    if kind is dict:
        try:
            return {key: join_as_arrays([sample[key] for sample in samples]) for key in samples[0]}
        except KeyError:
            raise NotJoined from None
    if kind is tuple or kind is list:
        _only(map(len, samples))
        return [join_as_arrays(field) for field in zip(*samples, strict=True)]
    if issubclass(kind, np.generic):
        scalars = np.array(samples)
        if scalars.dtype.type is kind and scalars.dtype.char in _DTYPES - _NO_SCALARS:
            return ArrivesAsTensor(scalars)
    raise NotJoined


def _only(values: Any) -> Any:
    """The value that all are equal to."""
    value, *others = set(values)
    if others:
        raise NotJoined
    return value


def _stack(arrays: Any) -> npt.NDArray[Any]:
    """Stacks arrays of one shape and dtype that lie in memory in the plain order: torch keeps other orders."""
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if dtype.char not in _DTYPES or not dtype.isnative or 0 in shape:
        raise NotJoined
    joined = batch_memory((len(arrays), *shape), dtype)
    strides = joined.strides[1:]
    if any(array.shape != shape or array.dtype != dtype or array.strides != strides for array in arrays):
        raise NotJoined
    return np.stack(arrays, out=joined)
