"""`tf.data.Dataset`, batched or not. Tensors are looked at as numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.doctor.subject.kind import Kind
from headrace.doctor.subject.looking import attribute, descends_from
from headrace.doctor.subject.torch_loader import STREAM

__all__ = ["TensorFlowDataset"]

_MAX_DEPTH = 64
_MAKES_BATCHES = ("BatchDataset", "PaddedBatch", "MapAndBatch")
_PER_SAMPLE = ("Unbatch", "FlatMap", "Interleave")
"""Steps after which it is not known any more whether something is a batch."""


class TensorFlowDataset(Kind):
    """A pipeline of tf.data. The steps can be seen, but a pass goes through all of them."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        batch = _find_batch(target)
        self.is_batched = batch is not None
        if batch is not None:
            size = _number(attribute(batch, "_batch_size"))
            self.batch_size = size
            self.drop_last = bool(_number(attribute(batch, "_drop_remainder")) or 0)

    @classmethod
    def holds(cls, target: Any) -> bool:
        return descends_from(target, "tensorflow", "DatasetV2")

    @property
    def cannot(self) -> dict[str, str]:
        return {
            "index": STREAM,
            "join": "tf.data joins samples inside its pipeline: what comes out is joined already"
            if self.is_batched
            else "there is no batch() in the pipeline: what comes out is not joined",
            "workers": "tf.data works in threads of one process: there are no worker processes",
            "streams": "tf.data works in threads of one process: there are no worker processes",
            "pickle": "a tf.data.Dataset is a graph of its library and is not pickled",
        }

    @property
    def num_samples(self) -> int | None:
        return None if self.is_batched else self._cardinality()

    @property
    def num_batches(self) -> int | None:
        return self._cardinality() if self.is_batched else None

    def _cardinality(self) -> int | None:
        try:
            count = int(self.target.cardinality())
        except Exception:
            return None
        return count if count >= 0 else None  # -1: without end, -2: not known

    def epoch(self) -> Iterator[Any]:
        return _Arrays(iter(self.target))


class _Arrays(Iterator[Any]):
    """What an iterator of tf.data yields, as numpy."""

    def __init__(self, items: Iterator[Any]) -> None:
        self._items = items

    def __next__(self) -> Any:
        return _as_numpy(next(self._items))


def _as_numpy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _as_numpy(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_as_numpy(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    # A ragged tensor has numpy() too, but its rows differ in length: it is taken row by row.
    if hasattr(value, "to_list"):
        return value.to_list()
    return value.numpy() if hasattr(value, "numpy") else value


def _find_batch(dataset: Any) -> Any:
    """The step that batches; None: none, or one whose batches are taken apart later."""
    pending = [dataset]
    for _ in range(_MAX_DEPTH):
        if not pending:
            return None
        one = pending.pop(0)
        name = type(one).__name__
        if any(part in name for part in _MAKES_BATCHES):
            return one
        if any(part in name for part in _PER_SAMPLE):
            return None
        inputs = attribute(one, "_inputs")
        pending += list(inputs()) if callable(inputs) else []
    return None


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except Exception:
        return None
