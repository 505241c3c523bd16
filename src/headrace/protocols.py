"""The seams of headrace: typing Protocols only. Depends on nothing, so anyone can implement one.

    Source ──read──▶ stages ──▶ Collate ──▶ Transport ──▶ loader        Order says which index comes next;
                                                                       a Runner executes a Task for each work order.

Each protocol has a conformance suite in `headrace.testing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from headrace.errors import SampleId, Where

__all__ = ["Collate", "Mark", "Order", "Runner", "SampleId", "Source", "Stateful", "Task"]

OrderT_contra = TypeVar("OrderT_contra", contravariant=True)
ResultT_co = TypeVar("ResultT_co", covariant=True)
OrderT = TypeVar("OrderT")
ResultT = TypeVar("ResultT")

Mark = Callable[[int], None]
"""Called by a task with k just before it starts the k-th sample of its order, so that a death can be named."""


@runtime_checkable
class Source(Protocol):
    """What can be read: N records with stable identities, addressed by row number 0..N-1.

    The same index gives the same record and the same id in every process, for as long as the fingerprint is the same.
    """

    @property
    def runs_user_code(self) -> bool:
        """True if reading runs code that is not headrace's: it may draw from global generators or change things."""
        ...

    def __len__(self) -> int:
        """Number of records, N."""
        ...

    def read_many(self, indices: Sequence[int]) -> Sequence[Any]:
        """Returns one record per index, in the order of `indices`; reads nothing else."""
        ...

    def sample_id(self, index: int) -> SampleId:
        """Returns the stable identity of one record: a relative path, `shard#key`, or the row number."""
        ...

    def locate(self, index: int) -> str | None:
        """Returns where the record lies, for people (a file path); None if there is nothing to add to the id."""
        ...

    def fingerprint(self) -> str:
        """Returns a short text that changes when the records, their ids or their order change."""
        ...


class Order(Protocol):
    """Which index comes next: for each epoch a list of N' row numbers, without saying where it is kept.

    `kind` names the algorithm and its version, and is part of a saved state: a new version never changes old runs.
    """

    @property
    def kind(self) -> str:
        """Algorithm and version, e.g. `keyed-1`."""
        ...

    def __len__(self) -> int:
        """Number of positions in one epoch, N'. Equals the data set's N unless a sampler says otherwise."""
        ...

    def indices(self, seed: int, epoch: int, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the row number at each position (each in [0, N')) of that epoch."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """PyTorch's contract for what can be saved and resumed."""

    def state_dict(self) -> Mapping[str, Any]:
        """Returns the state as plain values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state that `state_dict` returned."""
        ...


class Collate(Protocol):
    """Joins samples into one batch; the last step that happens in a worker."""

    def __call__(self, samples: list[Any]) -> Any:
        """Returns the batch made of `samples`, in their order."""
        ...


class Task(Protocol[OrderT_contra, ResultT_co]):
    """What a runner executes for each work order. Must survive pickling for runners that start by spawn."""

    def open(self, worker: int | None, num_workers: int) -> None:
        """Called once in each worker before its first order; worker None = the main process (inline)."""
        ...

    def run(self, order: OrderT_contra, mark: Mark) -> ResultT_co:
        """Does the work of one order. May be called from several threads at once by a thread runner."""
        ...

    def close(self) -> None:
        """Called once in each worker after its last order."""
        ...

    def pinned_to(self, order: OrderT_contra) -> int | None:
        """Returns the worker that must execute this order, or None if any may."""
        ...

    def where(self, order: OrderT_contra, item: int | None) -> Where:
        """Names, in the main process, the item-th sample of an order (None: the order as a whole)."""
        ...


class Runner(Protocol):
    """Who executes: an ordered, bounded, parallel map from work orders to results.

    One semantics for all runners (the conformance suite `headrace.testing.RunnerSuite` demands it):

    * Results come in the order of the orders, whatever finishes first.
    * At most `max_in_flight` orders are taken ahead of the consumer.
    * A task's exception is raised in place of the result of its order, with its own type; afterwards the run is over.
    * Closing or forgetting the iterator ends the run: no thread, process, shared memory or descriptor is left, except
      the idle workers of a persistent runner, which `close()` or forgetting the runner ends.
    * Several runs may be live at once and do not disturb each other.
    """

    @property
    def name(self) -> str:
        """inline, threads, processes, ...: the word that the loader's `runner` argument takes."""
        ...

    @property
    def num_workers(self) -> int:
        """Workers that execute at once; 0 = in the caller."""
        ...

    @property
    def max_in_flight(self) -> int:
        """Orders that may be taken before the consumer has the first one's result; bounds memory."""
        ...

    def run(self, task: Task[OrderT, ResultT], orders: Iterable[OrderT]) -> Iterator[ResultT]:
        """Returns an iterator over the results; a generator, so that `close()` on it ends the run."""
        ...

    def close(self) -> None:
        """Ends idle workers. May be called twice."""
        ...
