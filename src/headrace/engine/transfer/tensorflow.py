"""A loader's batches as a `tf.data.Dataset`: what its elements are is told beforehand, by making one-sample batches.

loader ──one epoch per iteration──▶ numpy over the same memory ──from_generator──▶ tf.data
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.contract import Contract
from headrace.engine.transfer.convert import to_numpy
from headrace.errors import ConfigurationError, MissingExtra

__all__ = ["signature_of", "to_tf"]


def to_tf(begin: Callable[[], Iterator[Any]], signature: Any) -> Any:
    """Returns a `tf.data.Dataset` of which each iteration is one pass.

    Args:
        begin: Begins a pass, and returns its batches: numpy arrays, tensors, numbers, text, in dicts, lists or tuples.
        signature: A structure of `tf.TensorSpec`: what `signature_of` returns.

    Raises:
        MissingExtra: TensorFlow is not installed.
    """
    tf = _tensorflow()

    def batches() -> Iterator[Any]:
        passed = begin()
        try:
            for batch in passed:
                yield _element(batch)
        finally:
            close = getattr(passed, "close", None)
            if close is not None:
                close()

    options = tf.data.Options()
    # TensorFlow would read one batch ahead on its own, and the loader's state would stand one batch too far.
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.from_generator(batches, output_signature=signature).with_options(options)


def signature_of(batches: Sequence[Any], *, is_batched: bool, contract: Contract | None = None) -> Any:
    """Returns the structure of `tf.TensorSpec` that all of some batches fit.

    Args:
        batches: At least one. Sizes that differ between them are None in the signature.
        is_batched: The first axis runs over samples, so its size is None as well.
        contract: Sizes that it lets differ between samples are None, too.

    Raises:
        ConfigurationError: something in them is no tensor to TensorFlow, or has another dtype or structure elsewhere.
        MissingExtra: TensorFlow is not installed.
    """
    fields = contract.fields if contract is not None else ()
    free = {
        field.name: [axis + is_batched for axis, dim in enumerate(field.shape or ()) if not isinstance(dim, int)]
        for field in fields
    }
    return _Signature(_tensorflow(), is_batched, free).of([_element(batch) for batch in batches], "")


class _Signature:
    """Walks over several batches of one structure at once."""

    def __init__(self, tf: Any, is_batched: bool, free: Mapping[str, Sequence[int]]) -> None:
        self._tf, self._is_batched, self._free = tf, is_batched, free

    def of(self, values: Sequence[Any], field: str) -> Any:
        """Returns the specs of one part, which lies at `field`: names and places joined by dots."""
        first = values[0]
        if any(isinstance(value, dict) != isinstance(first, dict) for value in values) or any(
            isinstance(value, tuple) != isinstance(first, tuple) for value in values
        ):
            raise ConfigurationError(f"{_named(field)} has another structure in one sample than in another")
        if not isinstance(first, (dict, tuple)):
            return self._leaf([np.asarray(value) for value in values], field)
        names = list(first) if isinstance(first, dict) else list(range(len(first)))
        if any((list(value) if isinstance(value, dict) else list(range(len(value)))) != names for value in values):
            raise ConfigurationError(f"{_named(field)} has other fields in one sample than in another")
        inside = f"{field}." if field else ""
        parts = [self.of([value[name] for value in values], f"{inside}{name}") for name in names]
        return dict(zip(names, parts, strict=True)) if isinstance(first, dict) else tuple(parts)

    def _leaf(self, arrays: Sequence[Any], field: str) -> Any:
        is_text = all(map(_is_text, arrays))
        dtypes, ranks = {array.dtype for array in arrays}, {array.ndim for array in arrays}
        if len(ranks) > 1 or (len(dtypes) > 1 and not is_text):
            raise ConfigurationError(
                f"{_named(field)} is not one kind of tensor: dtypes {', '.join(sorted(map(str, dtypes)))}; "
                f"numbers of axes {', '.join(map(str, sorted(ranks)))}"
            )
        if arrays[0].dtype.hasobject and not is_text:
            raise ConfigurationError(f"{_named(field)} holds Python objects", do="leave it out in a stage")
        try:
            dtype = self._tf.string if is_text else self._tf.as_dtype(arrays[0].dtype)
        except TypeError as error:
            raise ConfigurationError(
                f"{_named(field)} is {arrays[0].dtype}, which is no tensor to TensorFlow",
                do="leave it out or convert it in a stage; or give to_tf(signature=...)",
            ) from error
        sizes = [set(axis) for axis in zip(*(array.shape for array in arrays), strict=True)]
        # The last batch may be smaller than the others.
        free = {*self._free.get(field, ()), *([0] if self._is_batched else [])}
        shape = [size.pop() if len(size) == 1 and axis not in free else None for axis, size in enumerate(sizes)]
        return self._tf.TensorSpec(shape, dtype)


def _named(field: str) -> str:
    return f"field {field}" if field else "the batch"


def _is_text(array: Any) -> bool:
    if array.dtype.kind == "O":
        return all(isinstance(part, (str, bytes)) for part in array.reshape(-1).tolist())
    return bool(array.dtype.kind in "US")


def _element(batch: Any) -> Any:
    """Returns a batch as TensorFlow nests: plain dicts and tuples of arrays; lists of text are one array."""
    return _nested(to_numpy(batch))


def _nested(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _nested(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(part, (str, bytes)) for part in value):
            return np.array(value, dtype=np.object_)  # not as numpy's own text, which drops zeros at the end
        return tuple(_nested(part) for part in value)
    return value


def _tensorflow() -> Any:
    try:
        import tensorflow as tf
    except ImportError as error:
        raise MissingExtra(
            "TensorFlow is needed for to_tf, and not installed", do="pip install 'headrace[tf]'    # or tensorflow"
        ) from error
    return tf
