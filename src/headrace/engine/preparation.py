"""One sample: read, through the stages, held against the contract; and the name of the place when that fails.

Everything random takes its key from (seed, epoch, sample id), never from the worker, so that a sample is the same
under any worker count, runner, rank layout or resume. Code that draws from global generators is reseeded before each
sample.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.contract import Contract
from headrace.contract.breach import require_none
from headrace.engine.plan import Plan
from headrace.engine.transform import global_generators as generators
from headrace.engine.transform.stage import Stage
from headrace.engine.work import WorkOrder
from headrace.errors import Where, annotate
from headrace.keys import derive_key
from headrace.observe import StageTime
from headrace.protocols import Mark

__all__ = ["FILTERED", "Preparation", "Refused", "StageClock", "batch_key", "this_worker"]

FILTERED = object()
"""Stands for a sample that the stages dropped and the contract lets them drop."""

_here = threading.local()
"""Which worker this thread is: a task is shared by the threads of a thread runner, so the task cannot know."""


def this_worker() -> int | None:
    """Number of the worker that this thread is; None = the caller's own thread."""
    worker: int | None = getattr(_here, "worker", None)
    return worker


def set_this_worker(worker: int | None) -> None:
    """Says which worker this thread is."""
    _here.worker = worker


class Refused(Exception):
    """Carries a sample's own exception, and the place, from where it failed to where the policy decides."""

    def __init__(self, error: Exception, where: Where, *, is_incomplete: bool = False) -> None:
        self.error, self.where, self.is_incomplete = error, where, is_incomplete


class StageClock:
    """Adds up wall time by stage for one order. Stages hold no timing code of their own."""

    def __init__(self) -> None:
        self._wall_s: dict[str, float] = {}
        self._num_samples: dict[str, int] = {}

    def add(self, stage: str, wall_s: float, num_samples: int) -> None:
        """Adds the time that some samples took in a stage."""
        self._wall_s[stage] = self._wall_s.get(stage, 0.0) + wall_s
        self._num_samples[stage] = self._num_samples.get(stage, 0) + num_samples

    @contextlib.contextmanager
    def stage(self, name: str, num_samples: int) -> Iterator[None]:
        """Times a block."""
        started_s = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started_s, num_samples)

    def times(self) -> tuple[StageTime, ...]:
        """Returns the times, in the order in which stages were met."""
        return tuple(map(StageTime, self._wall_s, self._wall_s.values(), self._num_samples.values()))


def batch_key(purpose: str, order: WorkOrder) -> int:
    """Key of draws that belong to a batch as a whole: by where it begins, not by who makes it."""
    return derive_key(purpose, order.seed, int(order.epochs[0]), int(order.positions[0]))


@dataclasses.dataclass(kw_only=True)
class Preparation:
    """Prepares the samples of work orders, one by one."""

    plan: Plan
    contract: Contract | None
    rank: int
    may_draw: bool
    """True if global generators are to be reseeded: somebody's code may draw from them, and no thread shares them."""
    is_batched: bool = True
    """False if samples are delivered one by one, which torch reads by `__getitem__` also where there is `__getitems__`."""

    def __post_init__(self) -> None:
        self.draws = False
        """True once somebody's code was seen to draw from a global generator."""
        source = self.plan.source
        self._reads_batches = not source.runs_user_code or getattr(source, "has_batched_read", False)
        self.only_reads = not self.plan.stages and self.contract is None
        """True if a sample is the record as it was read: nothing to apply, nothing to check."""
        # As in torch, `__getitems__` is asked for batches, also of one: what it returns may differ from `__getitem__`.
        reads_lists = self.is_batched and getattr(source, "has_batched_read", False)
        self.read_one: Callable[[int], Any] = (
            None if reads_lists else getattr(source, "read_one", None)
        ) or self._read_one_of_many
        """Returns the record of one row."""

    def records(self, order: WorkOrder, mark: Mark, clock: StageClock) -> Sequence[Any] | None:
        """Reads all records of an order in one call where that is allowed; None: read one by one.

        One by one also after any failure, because a failed call for many does not say which; and for good once a
        batched read was seen to draw from a global generator, because its draws would depend on the batch.
        """
        if not self._reads_batches or len(order.indices) == 1:
            return None
        mark(-1)  # the order as a whole
        snapshot = None
        if self.may_draw and self.plan.source.runs_user_code:
            generators.reseed(batch_key("read-many", order))
            snapshot = generators.capture()
        try:
            with clock.stage("read", len(order.indices)):
                records = self.plan.read_many(order.indices.tolist())
        except Exception:
            return None  # the sample that fails will raise when it is read alone, and be named
        if snapshot is not None and generators.moved_since(snapshot):
            self._reads_batches = False
            return None
        return records

    def sample(self, order: WorkOrder, item: int, index: int, records: Sequence[Any] | None, clock: StageClock) -> Any:
        """Returns one sample, or FILTERED; raises Refused with the sample's own exception, annotated.

        Args:
            order: Says seed, epoch and position.
            item: Place in the order.
            index: Row to load: the order's own, or a stand-in's.
            records: What `records` returned.
            clock: Told the time of each stage.
        """
        sample_id = self.plan.sample_id(index)
        epoch = int(order.epochs[item])
        current: Stage | None = None  # None: reading
        started_s = time.perf_counter()

        def enter(stage: Stage | None) -> None:
            nonlocal current, started_s
            now_s = time.perf_counter()
            if current is not None or records is None:  # records that came together were timed together
                clock.add("read" if current is None else current.name, now_s - started_s, 1)
            current, started_s = stage, now_s

        try:
            if self.may_draw:
                generators.reseed(derive_key("global", order.seed, epoch, sample_id))
            record = self.read_one(index) if records is None else records[item]
            sample = self.plan.apply_stages(record, sample_id=sample_id, seed=order.seed, epoch=epoch, enter=enter)
        except Exception as error:
            stage = "read" if current is None else str(current)
            raise self.refused(error, order, item, index, stage) from error
        enter(None)
        return sample if self.contract is None else self._held(self.contract, record, sample, order, item, index)

    def _read_one_of_many(self, index: int) -> Any:
        return self.plan.read_many([index])[0]

    def _held(self, contract: Contract, record: Any, sample: Any, order: WorkOrder, item: int, index: int) -> Any:
        """Holds a sample against the contract, and against what its stages may do to it."""
        sample_id = self.plan.sample_id(index)
        # Where samples are kept, the record itself is gone: what the stages made of it is no measure of reshaping.
        before = None if hasattr(self.plan.source, "kept_stages") and sample is not None else record
        stages = self.plan.all_stages
        if sample is None and stages and contract.may_filter:
            return FILTERED
        breaches = contract.check_stage(before, sample, sample_id, stage="transform") if stages else []
        breaches = breaches or contract.check_sample(sample, sample_id)
        if not breaches:
            return sample
        try:
            require_none(breaches)
        except Exception as error:
            is_incomplete = any(breach.is_incomplete for breach in breaches)
            raise self.refused(error, order, item, index, "contract", is_incomplete=is_incomplete) from error

    def refused(
        self, error: Exception, order: WorkOrder, item: int, index: int, stage: str, *, is_incomplete: bool = False
    ) -> Refused:
        """Returns what carries a sample's own exception, to which a note with the place is added, to the policy."""
        stage = getattr(error, "headrace_stage", stage)  # a source that runs stages says which one failed
        where = self.place(order, item, index, stage=stage)
        do = []
        if stage == "read" and isinstance(error, IndexError):
            do = [f"look at __len__: the data set says it has {len(self.plan):,} samples"]
        annotate(error, where, do=do)
        return Refused(error, where, is_incomplete=is_incomplete)

    def place(self, order: WorkOrder, item: int, index: int, *, stage: str) -> Where:
        """Returns the full name of a place: sample, stage, epoch, position, rank, worker, seed."""
        return Where(
            sample_id=self.plan.sample_id(index),
            index=index,
            path=self.plan.locate(index),
            stage=stage,
            epoch=int(order.epochs[item]),
            position=int(order.positions[item]),
            rank=self.rank,
            worker=this_worker(),
            seed=order.seed,
        )
