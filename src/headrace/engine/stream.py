"""Tier C: opaque streams (iterable data sets). Exact only for the same ranks and workers; anything else is refused.

A stream has no row numbers. Each worker holds its own iterator, batches are taken from the workers in turn, and a
resume plays the stream again up to the saved place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sized
from typing import Any, NoReturn

import numpy as np
import xxhash

from headrace.contract.view import as_array, flatten
from headrace.engine.accounting import Account
from headrace.engine.arguments import Arguments
from headrace.engine.batch import BatchInfo
from headrace.engine.order.batches import Tail
from headrace.engine.order.cursor import Cursor
from headrace.engine.passes import Run
from headrace.engine.relay import Relay, timed
from headrace.engine.transform import global_generators as generators
from headrace.engine.work import Delivery
from headrace.engine.worker_setup import WorkerSetup
from headrace.errors import (
    ConfigurationError,
    DuplicateDataWarning,
    SampleId,
    SourceError,
    Where,
    annotate,
)
from headrace.keys import derive_key
from headrace.protocols import Mark, Runner

__all__ = ["StreamLoading", "StreamOrder", "StreamTask", "is_stream"]

NUM_COMPARED = 4
"""Samples from the start of two shares that are compared to see whether a stream splits itself over ranks."""


def is_stream(dataset: Any) -> bool:
    """True for an iterable data set: torch's IterableDataset, or anything with `__iter__` and no `__getitem__`."""
    if hasattr(dataset, "__getitem__") and not _is_torch_iterable(dataset):
        return False
    return hasattr(dataset, "__iter__")


def _is_torch_iterable(dataset: Any) -> bool:
    # torch's Dataset has a __getitem__ that only raises, and its IterableDataset inherits it. By name: no torch import.
    return any(
        kind.__module__.startswith("torch.") and kind.__name__ == "IterableDataset" for kind in type(dataset).mro()
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StreamOrder:
    """Asks one worker for its next batch."""

    step: int
    worker: int


@dataclasses.dataclass(kw_only=True)
class StreamTask:
    """Executes stream orders for one pass: each worker process holds the iterator of its share."""

    dataset: Any
    collate: Callable[[Any], Any]
    batch_size: int | None
    drops_last: bool
    seed: int
    epoch: int
    setup: WorkerSetup
    is_inline: bool

    def __post_init__(self) -> None:
        self._worker = 0
        self._iterator: Iterator[Any] | None = None
        self._state: Any = None
        self._num_taken = 0

    def open(self, worker: int | None, num_workers: int) -> None:
        """Readies this worker; the iterator is made with its first order."""
        self._worker = worker or 0
        if worker is not None:
            self.setup(worker, num_workers)

    def close(self) -> None:
        """Forgets the iterator."""
        self._iterator = None

    def pinned_to(self, order: StreamOrder) -> int | None:
        """A share is read by the worker that holds its iterator."""
        return None if self.is_inline else order.worker

    def run(self, order: StreamOrder, mark: Mark) -> Delivery:  # noqa: ARG002 - a stream's samples have no number before they come
        """Returns the next batch of this worker's share, or an exhausted delivery."""
        with self._own_generators():
            samples = list(itertools.islice(self._share(), self.batch_size or 1))
            if not samples or (self.drops_last and len(samples) < (self.batch_size or 1)):
                return _delivery(None, (), exhausted=True)
            ids = tuple(f"{self._worker}:{self._num_taken + k}" for k in range(len(samples)))
            self._num_taken += len(samples)
            try:
                batch = self.collate(samples if self.batch_size is not None else samples[0])
            except Exception as error:
                annotate(error, Where(stage="collate", epoch=self.epoch, worker=self._worker, seed=self.seed))
                raise
        return _delivery(batch, ids, exhausted=False)

    def where(self, order: StreamOrder, item: int | None) -> Where:  # noqa: ARG002
        """Names the share; its samples have no number before they come."""
        return Where(stage="read", epoch=self.epoch, worker=order.worker, seed=self.seed)

    def _share(self) -> Iterator[Any]:
        """This worker's iterator, whose failures say how far it had come."""
        if self._iterator is None:
            generators.reseed(derive_key("stream", self.seed, self.epoch, self.setup.rank, self._worker))
            self._iterator = iter(self.dataset)
        iterator = self._iterator
        for taken in itertools.count(self._num_taken):
            try:
                sample = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                where = Where(
                    sample_id=f"{self._worker}:{taken}",
                    stage="read",
                    epoch=self.epoch,
                    rank=self.setup.rank,
                    worker=None if self.is_inline else self._worker,
                    seed=self.seed,
                )
                annotate(error, where)
                raise
            yield sample

    @contextlib.contextmanager
    def _own_generators(self) -> Iterator[None]:
        """Runs the stream on its own global random state, which goes on from batch to batch, and puts back the caller's."""
        callers = generators.capture()
        if self._state is not None:
            generators.restore(self._state)
        if self.is_inline and self.setup.world_size > 1:
            self.setup.announce(0, 1)
        try:
            yield
        finally:
            self._state = generators.capture()
            generators.restore(callers)
            if self.is_inline and self.setup.world_size > 1:
                self.setup.retract()


def _delivery(batch: Any, ids: tuple[SampleId, ...], *, exhausted: bool) -> Delivery:
    return Delivery(
        batch=batch,
        sample_ids=ids,
        kept=np.arange(len(ids), dtype=np.int64),
        is_replaced=np.zeros(len(ids), dtype=np.bool_),
        exhausted=exhausted,
    )


class StreamLoading:
    """How a loader loads an iterable data set."""

    def __init__(
        self,
        dataset: Any,
        arguments: Arguments,
        *,
        collate: Callable[[Any], Any],
        seed: int,
        worker_init_fn: Callable[[int], None] | None,
    ) -> None:
        _refuse_arguments(arguments)
        self._dataset = dataset
        self._arguments = arguments
        self._collate = collate
        self._num_shares = max(1, arguments.fixed_num_workers)
        self._setup = WorkerSetup(
            dataset=dataset,
            seed=seed,
            init=worker_init_fn,
            rank=arguments.effective_rank,
            world_size=arguments.effective_world_size,
        )
        self._is_split_checked = arguments.effective_world_size == 1

    def num_batches(self, seed: int, epoch: int) -> int:  # noqa: ARG002 - the same in every epoch
        """Batches of an epoch by the stream's own word; TypeError if it has no length."""
        if not isinstance(self._dataset, Sized):
            raise TypeError(f"a stream of type {type(self._dataset).__name__} has no len()")
        num_samples, batch_size = len(self._dataset), self._arguments.batch_size or 1
        return num_samples // batch_size if self._drops_last else math.ceil(num_samples / batch_size)

    @property
    def _drops_last(self) -> bool:
        return self._arguments.resolved_tail is Tail.DROP

    def begin(self, start: Cursor, runner: Runner, relay: Relay[Any, Any] | None = None) -> Run:  # noqa: ARG002 - each pass has a task of its own
        """Returns the pass that goes on from that place, playing again what comes before it."""
        self._check_split(start.seed)
        task = StreamTask(
            dataset=self._dataset,
            collate=self._collate,
            batch_size=self._arguments.batch_size,
            drops_last=self._drops_last,
            seed=start.seed,
            epoch=start.epoch,
            setup=self._setup,
            is_inline=runner.num_workers == 0,
        )
        account = Account(start.epoch, None, ledger=None, runner=runner.name, num_workers=runner.num_workers)
        return Run(
            epoch=start.epoch,
            start=start,
            end=dataclasses.replace(start, epoch=start.epoch + 1, consumed=0),
            account=account,
            batches=self._deliver(task, start, runner, account),
        )

    def _deliver(
        self, task: StreamTask, start: Cursor, runner: Runner, account: Account
    ) -> Generator[tuple[Any, BatchInfo], None, None]:
        exhausted: set[int] = set()
        in_flight: deque[StreamOrder] = deque()
        consumed, step, firsts = 0, 0, dict[int, str]()

        def issued() -> Iterator[StreamOrder]:
            # In turn over the workers whose share is not known to have ended; one order too many comes back empty.
            for place in itertools.count():
                if len(exhausted) == self._num_shares:
                    return
                if place % self._num_shares not in exhausted:
                    in_flight.append(StreamOrder(step=place, worker=place % self._num_shares))
                    yield in_flight[-1]

        with contextlib.closing(timed(runner.run(task, issued()))) as deliveries:
            for delivery, wait_s in deliveries:
                order = in_flight.popleft()
                if delivery.exhausted:
                    exhausted.add(order.worker)
                    continue
                consumed += len(delivery.sample_ids)
                if order.worker not in firsts and self._num_shares > 1:
                    _warn_if_repeated(firsts, order.worker, _digest(delivery.batch))
                if consumed > start.consumed:
                    account.count(delivery, wait_s)
                    yield delivery.batch, self._info(delivery, start, step, consumed)
                step += 1

    def _info(self, delivery: Delivery, start: Cursor, step: int, consumed: int) -> BatchInfo:
        num_samples = len(delivery.sample_ids)
        return BatchInfo(
            sample_ids=delivery.sample_ids,
            cursor=dataclasses.replace(start, consumed=consumed),
            epoch=start.epoch,
            step=step,
            positions=np.arange(consumed - num_samples, consumed, dtype=np.int64),
            is_pad=np.zeros(num_samples, dtype=np.bool_),
            is_replaced=delivery.is_replaced,
        )

    # States.

    def cursor(self, seed: int, epoch: int, consumed: int) -> Cursor:
        """Returns the state at that place; it fits the same layout only."""
        return Cursor(
            seed=seed,
            epoch=epoch,
            consumed=consumed,
            fingerprint={"data": type(self._dataset).__qualname__, "order": "stream-1"},
            layout={
                "num_workers": self._arguments.fixed_num_workers,
                "world_size": self._arguments.effective_world_size,
                "batch_size": self._arguments.batch_size or 1,
            },
        )

    def check_fits(self, saved: Cursor) -> None:
        """Refuses a state of another stream or layout; prints both sides."""
        saved.check_fits(self.cursor(saved.seed, saved.epoch, 0))

    # Checks.

    def _check_split(self, seed: int) -> None:
        """Refuses several ranks over a stream that gives every share the same samples."""
        if self._is_split_checked:
            return
        self._is_split_checked = True
        total = self._arguments.effective_world_size * self._num_shares
        firsts = []
        for share in (0, total - 1):
            setup = dataclasses.replace(self._setup, rank=0, world_size=1)
            with generators.keyed(derive_key("split", seed, share)):
                setup.announce(share, total)
                try:
                    firsts.append([_digest(sample) for sample in itertools.islice(iter(self._dataset), NUM_COMPARED)])
                finally:
                    setup.retract()
        if firsts[0] and firsts[0] == firsts[1]:
            raise SourceError(
                f"the stream {type(self._dataset).__name__} gives every rank the same samples: shares 0 and "
                f"{total - 1} of {total} begin with the same {len(firsts[0])} samples",
                why="it does not split itself by torch.utils.data.get_worker_info()",
                do=[
                    "info = get_worker_info()    # in __iter__; headrace numbers the workers of all ranks through",
                    "yield from itertools.islice(everything, info.id, None, info.num_workers)",
                ],
            )

    # For the loader's own attributes.

    def replay(self, sample_id: SampleId, seed: int, epoch: int) -> NoReturn:  # noqa: ARG002
        """A stream cannot be asked for one sample."""
        raise ConfigurationError(
            f"sample {sample_id} cannot be replayed: a stream has no random access",
            do="use a map-style data set, or iterate the stream up to it",
        )

    def sampler(self, seed: int, epoch: int) -> None:
        """A stream has no sampler."""

    def describe(self) -> str:
        """Returns what is loaded, in a few words."""
        return f"stream {type(self._dataset).__name__}"


def _refuse_arguments(arguments: Arguments) -> None:
    """Refuses what a stream cannot do."""
    given = {
        "shuffle=True": bool(arguments.shuffle),
        "sampler": arguments.sampler is not None,
        "batch_sampler": arguments.batch_sampler is not None,
        "on_error": arguments.policy is not None,
        f"tail={arguments.tail!r}": arguments.resolved_tail in {Tail.PAD, Tail.CARRY},
        "runner='threads'": arguments.resolved_runner == "threads",
        "runner='host'": arguments.resolved_runner == "host",
    }
    clash = [name for name, is_given in given.items() if is_given]
    if clash:
        raise ConfigurationError(
            f"an iterable data set cannot have {', '.join(clash)}: it has no row numbers, and says itself what comes next",
            do="give the data set __len__ and __getitem__, or leave these arguments out",
        )


def _digest(batch: Any) -> str:
    """Digest of the content of a sample or batch, whatever it is made of."""
    digest = xxhash.xxh3_128()
    for field, value in flatten(batch):
        array = as_array(value)
        digest.update(field.encode())
        digest.update(repr(value).encode() if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _warn_if_repeated(firsts: dict[int, str], worker: int, digest: str) -> None:
    """Warns if two workers begin with the same batch: the sign of a stream that every worker yields whole."""
    twin = next((other for other, seen in firsts.items() if seen == digest), None)
    firsts[worker] = digest
    if twin is not None:
        warnings.warn(
            f"workers {twin} and {worker} begin with the same batch: the data set probably yields everything in every "
            "worker, so each sample comes once per worker. Split it in __iter__ by torch.utils.data.get_worker_info().",
            DuplicateDataWarning,
            stacklevel=2,
        )
