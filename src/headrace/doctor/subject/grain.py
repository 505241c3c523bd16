"""Grain: `DataLoader`, `MapDataset` and `IterDataset`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from headrace.doctor.subject.kind import CannotExamine, Collate, Kind
from headrace.doctor.subject.looking import attribute, descends_from, length
from headrace.doctor.subject.torch_loader import STREAM
from headrace.doctor.subject.walking import Walk

__all__ = ["GrainDataset", "GrainLoader"]

NO_JOIN = "there is no batch() in the pipeline: what comes out is not joined"
SHARES = "Grain shares the rows out to its workers itself"
_MAX_DEPTH = 64


class GrainLoader(Kind):
    """A `grain.DataLoader`: source, sampler, operations, workers. Samples are taken before the last Batch."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        operations = list(target._operations)
        self._batch = next((op for op in reversed(operations) if _is_batch(op)), None)
        if self._batch is not None:
            self.is_batched = True
            self.batch_size, self.drop_last = int(self._batch.batch_size), bool(self._batch.drop_remainder)
            self.joins_apart = attribute(self._batch, "batch_fn") or _default_join()
            operations = operations[: operations.index(self._batch)]
        self._before_batch = operations
        self.num_workers = int(target.multiprocessing_options.num_workers)

    @classmethod
    def holds(cls, target: Any) -> bool:
        return descends_from(target, "grain", "DataLoader")

    @property
    def cannot(self) -> dict[str, str]:
        return {"index": "Grain's DataLoader hands samples over in its sampler's order only", "streams": SHARES} | (
            {} if self.is_batched else {"join": NO_JOIN}
        )

    @property
    def num_samples(self) -> int | None:
        return None  # a sampler goes on for as many epochs as it was told, or for ever

    @property
    def num_batches(self) -> int | None:
        return None

    def samples(self) -> Walk:
        return Walk(iter(self._again(0, self._before_batch)), key_of=self.key_of)

    def with_workers(self, num_workers: int, **changes: Any) -> Any:
        if changes:
            raise CannotExamine(f"Grain's DataLoader has no {', '.join(changes)}")
        return self._again(num_workers, self.target._operations)

    def _again(self, num_workers: int, operations: list[Any]) -> Any:
        target = self.target
        return type(target)(
            data_source=target._data_source,
            sampler=target._sampler,
            operations=list(operations),
            worker_count=num_workers,
            worker_buffer_size=target.multiprocessing_options.per_worker_buffer_size,
            shard_options=target._shard_options,
            read_options=target._read_options,
        )


class GrainDataset(Kind):
    """A `MapDataset` or `IterDataset`. Samples are taken before the batching, without processes of Grain's own."""

    def __init__(self, target: Any) -> None:
        super().__init__(target)
        shares = _shares(target)
        self._unprefetched = _without_prefetch(target if shares is None else shares[0])
        chain = list(_chain(self._unprefetched))
        batch = next((node for node in chain if _is_batch(node)), None)
        self._before_batch = self._unprefetched if batch is None else _without_prefetch(batch._parent)
        if batch is not None:
            self.is_batched = True
            size = attribute(batch, "_batch_size")
            self.batch_size = int(size) if size is not None else None
            self.drop_last = bool(attribute(batch, "_drop_remainder"))
            self.joins_apart = attribute(batch, "_batch_fn") or _default_join()
        if shares is not None:
            self.num_workers = len(shares)

    @classmethod
    def holds(cls, target: Any) -> bool:
        return descends_from(target, "grain", "MapDataset", "IterDataset")

    @property
    def cannot(self) -> dict[str, str]:
        return {
            "index": STREAM,
            "workers": "the number of workers is written into a Grain pipeline (mp_prefetch), not an option of it",
            "streams": SHARES,
        } | ({} if self.is_batched else {"join": NO_JOIN})

    @property
    def num_samples(self) -> int | None:
        found = length(self._before_batch)
        return None if found is None or found >= sys.maxsize else found  # repeated for ever

    @property
    def num_batches(self) -> int | None:
        found = length(self.target) if self.is_batched else None
        return None if found is None or found >= sys.maxsize else found

    def samples(self) -> Walk:
        dataset = self._before_batch
        if type(dataset).__name__ == "PrefetchIterDataset":  # a MapDataset read by threads
            dataset = dataset._parents[0]
        items = _Elements(dataset) if descends_from(dataset, "grain", "MapDataset") else iter(dataset)
        return Walk(items, key_of=self.key_of)


class _Elements(Iterator[Any]):
    """The elements of a MapDataset in this thread; one that fails does not end the pass, a filtered one is none."""

    def __init__(self, dataset: Any) -> None:
        self._dataset, self._index = dataset, 0

    def __next__(self) -> Any:
        while self._index < len(self._dataset):
            self._index += 1
            element = self._dataset[self._index - 1]
            if element is not None:
                return element
        raise StopIteration


def _is_batch(value: Any) -> bool:
    return descends_from(value, "grain", "Batch", "BatchOperation", "BatchMapDataset", "BatchIterDataset")


def _chain(node: Any) -> Iterator[Any]:
    """A pipeline from its end to its beginning, as long as each step has one parent."""
    for _ in range(_MAX_DEPTH):
        yield node
        parents: list[Any] = list(attribute(node, "_parents") or ())
        if len(parents) != 1:
            return
        node = parents[0]


def _shares(dataset: Any) -> list[Any] | None:
    """The pipelines of the single workers below `mp_prefetch`; None: there is no such step at the end."""
    for node in _chain(dataset):
        if type(node).__name__ == "InterleaveIterDataset":
            shares = list(attribute(node, "_datasets") or ())
            return shares if shares and all("Process" in type(share).__name__ for share in shares) else None
    return None


def _without_prefetch(dataset: Any) -> Any:
    """The pipeline without steps at its end that only compute it elsewhere."""
    for node in _chain(dataset):
        name = type(node).__name__
        # PrefetchIterDataset is where a MapDataset is read; the slice of one worker, where all of them take theirs.
        if name == "PrefetchIterDataset" or not any(part in name for part in ("Prefetch", "MpContext", "WorkerSlice")):
            return node
    return dataset


def _default_join() -> Collate | None:
    """Grain's own function; private, so that it may be elsewhere some day."""
    module = sys.modules.get("grain._src.python.dataset.transformations.batch")
    found = getattr(module, "make_batch", None)
    return found if callable(found) else None
