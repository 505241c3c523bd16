"""What a worker does with a work order: prepare its samples, each by the error policy, and collate; one delivery back.

gather ──────────────────────────▶ batch      where a source can make whole batches, and nothing else is asked for
read ──▶ stages ──▶ contract ──▶ collate      otherwise, and whenever a gather fails; the batch is the same
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import operator
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.contract import Contract
from headrace.engine.batch import WholeOrder, leading_size
from headrace.engine.batch_memory import for_the_result, is_sent_away
from headrace.engine.collate import (
    ContractCollate,
    NotJoined,
    default_collate,
    explain_failure,
    is_ours,
    join_as_arrays,
)
from headrace.engine.failures import Policy, Replace
from headrace.engine.folding import fold
from headrace.engine.plan import Plan
from headrace.engine.preparation import (
    FILTERED,
    Preparation,
    Refused,
    StageClock,
    batch_key,
    set_this_worker,
    this_worker,
)
from headrace.engine.run import no_mark
from headrace.engine.source import Gathering, collates_by_torch
from headrace.engine.torch_rules import has_torch_rules
from headrace.engine.transform import global_generators as generators
from headrace.engine.work import Delivery, Refusal, WorkOrder
from headrace.errors import SampleId, Where, annotate
from headrace.keys import derive_key
from headrace.observe import StageTime
from headrace.protocols import Mark

__all__ = ["FetchTask"]


@dataclasses.dataclass(kw_only=True)
class FetchTask:
    """Executes work orders for map-style data. Satisfies `protocols.Task`; pickles if the user's parts do."""

    plan: Plan
    collate: Callable[[Any], Any]
    """Joins samples (or converts the one sample, if `is_batched` is false)."""
    is_batched: bool
    policy: Policy
    """What to do with a sample that fails."""
    incomplete_policy: Policy
    """What to do with a sample in which something is missing, by the contract's word; the same as `policy` without."""
    contract: Contract | None
    rank: int
    worker_setup: Callable[[int, int], None] | None
    """Called with (worker, num_workers) in each worker process; None where workers share the caller's process."""
    reseeds: bool
    """Reseed global generators per sample. False for threads, which share them."""

    def __post_init__(self) -> None:
        # Without user code there is nobody who could draw.
        may_draw = self.reseeds and self.plan.runs_user_code
        self._preparation = Preparation(
            plan=self.plan, contract=self.contract, rank=self.rank, may_draw=may_draw, is_batched=self.is_batched
        )
        self._collate_is_ours = is_ours(self.collate) or isinstance(self.collate, ContractCollate)
        source = self.plan.source
        is_plain = self.is_batched and self._preparation.only_reads
        self._gathers = is_plain and isinstance(source, Gathering) and source.gathers and self._collates_as_torch()

    def _collates_as_torch(self) -> bool:
        return (self.collate is default_collate and has_torch_rules()) or collates_by_torch(self.collate)

    def open(self, worker: int | None, num_workers: int) -> None:
        """Readies this worker."""
        set_this_worker(worker)
        if worker is not None and self.worker_setup is not None:
            self.worker_setup(worker, num_workers)

    def close(self) -> None:
        """Nothing to give back."""

    def pinned_to(self, order: WorkOrder) -> int | None:  # noqa: ARG002 - the protocol's signature
        """Any worker may execute any order."""
        return None

    def run(self, order: WorkOrder, mark: Mark) -> Delivery:
        """Returns the batch of one work order, or raises the user's own exception with a note."""
        if self._gathers and (delivery := self._gather(order, mark)) is not None:
            return delivery
        clock = StageClock()
        loaded = self._load_without_draws(order, mark, clock)
        if loaded is not None and not self._collate_may_draw:
            batch = self._collate(order, loaded, clock) if loaded.samples else None
        else:
            with generators.keyed(batch_key("batch", order)):
                loaded = self._load(order, mark, clock) if loaded is None else loaded
                batch = self._collate(order, loaded, clock) if loaded.samples else None
        if not self._collate_is_ours:
            self._note_left_out(order, loaded, batch)
        if loaded.is_whole:
            return _whole_delivery(batch, len(order.indices), clock.times())
        kept = loaded.kept(len(order.indices))
        return Delivery(
            batch=batch,
            sample_ids=self._ids(order, loaded),
            kept=np.asarray(kept, dtype=np.int64),
            is_replaced=np.asarray([item in loaded.stand_ins for item in kept], dtype=np.bool_),
            refusals=tuple(loaded.refusals),
            stage_times=clock.times(),
        )

    def _gather(self, order: WorkOrder, mark: Mark) -> Delivery | None:
        """Returns the batch at once, or None: then the plain way says which sample is at fault, if one is."""
        mark(-1)  # the order as a whole
        num_samples = len(order.indices)
        started_s = time.perf_counter()
        try:
            batch = _for_the_result(self.plan.source.gather, order.indices)  # type: ignore[attr-defined] # `_gathers`: has it
        except Exception:
            return None
        read = StageTime("read", time.perf_counter() - started_s, num_samples)
        return _whole_delivery(batch, num_samples, (read,))

    @property
    def runs_user_code(self) -> bool:
        """True if executing an order runs code that is not headrace's."""
        return self.plan.runs_user_code or not self._collate_is_ours

    def for_threads(self) -> FetchTask | None:
        """Returns this task for workers that share one process; None if it was seen to draw from global generators.

        None, too, if there is a `worker_init_fn`, which expects a process of its own.
        """
        if self._preparation.draws or getattr(self.worker_setup, "init", None) is not None:
            return None
        return dataclasses.replace(self, worker_setup=None, reseeds=False)

    def where(self, order: WorkOrder, item: int | None) -> Where:
        """Names one sample of an order, or where the order begins if none is known."""
        if item is None or not 0 <= item < len(order.indices):
            return Where(epoch=int(order.epochs[0]), position=int(order.positions[0]), rank=self.rank, seed=order.seed)
        return self._preparation.place(order, item, int(order.indices[item]), stage="read")

    def replay(self, index: int, seed: int, epoch: int) -> Any:
        """Returns one sample as that epoch delivers it, here in the caller; raises its own exception."""
        one = {"indices": index, "epochs": epoch, "positions": 0}
        columns = {name: np.array([value], dtype=np.int64) for name, value in one.items()}
        order = WorkOrder(step=0, seed=seed, is_pad=np.array([False]), **columns)
        # The caller's global generators are put back afterwards.
        may_draw = self._preparation.may_draw
        with generators.keyed(batch_key("batch", order)) if may_draw else contextlib.nullcontext():
            try:
                sample = self._preparation.sample(order, 0, index, None, StageClock())
            except Refused as refused:
                raise refused.error from refused.error.__cause__
        return None if sample is FILTERED else sample

    @property
    def _collate_may_draw(self) -> bool:
        return self.reseeds and not self._collate_is_ours

    # Samples.

    def _load_without_draws(self, order: WorkOrder, mark: Mark, clock: StageClock) -> _Loaded | None:
        """Loads the samples without reseeding, and returns them if no global generator moved meanwhile; else None.

        Reseeding costs 20 microseconds a sample, several times the work of an in-memory data set, and most code does
        not draw. Code that does is found out at the end of the batch, which is then loaded again sample by sample;
        from then on this worker reseeds at once. What is delivered is the same either way, since samples that draw
        nothing do not depend on seeds.
        """
        preparation = self._preparation
        if not preparation.may_draw:
            return self._load(order, mark, clock)
        if preparation.draws:
            return None
        before = generators.capture()
        preparation.may_draw = False
        try:
            loaded = self._load(order, mark, clock)
        except Exception:
            if not generators.moved_since(before):
                raise
            loaded = None
        finally:
            preparation.may_draw = True
        if loaded is None or generators.moved_since(before):
            generators.restore(before)
            preparation.draws = True
            return None
        return loaded

    def _load(self, order: WorkOrder, mark: Mark, clock: StageClock) -> _Loaded:
        """Loads the samples of an order, each by the policy."""
        records = self._preparation.records(order, mark, clock)
        if self._preparation.only_reads and not self._preparation.may_draw:
            return self._load_records(order, records, mark, clock)
        loaded = _Loaded()
        for item, index in enumerate(order.indices.tolist()):
            mark(item)
            try:
                sample = self._preparation.sample(order, item, index, records, clock)
            except Refused as refused:
                self._settle(order, item, refused, loaded, clock)
                continue
            if sample is FILTERED:
                text = "the stages dropped it, which the contract allows"
                loaded.refusals.append(self._note(order, item, "transform", text))
                loaded.absent.add(item)
                continue
            loaded.samples.append(sample)
        return loaded

    def _load_records(self, order: WorkOrder, records: Sequence[Any] | None, mark: Mark, clock: StageClock) -> _Loaded:
        """Loads samples that are records: the same as `_load`, without a clock, a key or a closure per sample."""
        if type(records) is list:
            return _Loaded(samples=list(records))  # the list may be the data set's own
        loaded, begun = _Loaded(), 0
        rows = order.indices.tolist()
        read, keys = (
            (self._preparation.read_one, rows)
            if records is None
            else (functools.partial(operator.getitem, records), range(len(rows)))
        )
        started_s = time.perf_counter()
        while begun < len(rows):
            num_before = len(loaded.samples)
            try:
                _read_each(read, keys[begun:], loaded.samples, begun, mark)
                break
            except Exception as error:
                item = begun + len(loaded.samples) - num_before
                refused = self._preparation.refused(error, order, item, rows[item], "read")
                self._settle(order, item, refused, loaded, StageClock())  # its time is in ours
                begun = item + 1
        if records is None:  # records that came together were timed together
            clock.add("read", time.perf_counter() - started_s, len(rows))
        return loaded

    def _settle(self, order: WorkOrder, item: int, refused: Refused, loaded: _Loaded, clock: StageClock) -> None:
        """Enters a stand-in for a refused sample, or leaves its place out, as the policy says; or raises."""
        found = self._replacement(order, item, refused, clock)
        loaded.refusals.append(self._refusal(order, item, refused, None if found is None else found[0]))
        if found is None:
            loaded.absent.add(item)
        else:
            loaded.stand_ins[item], sample = found
            loaded.samples.append(sample)

    def _ids(self, order: WorkOrder, loaded: _Loaded) -> tuple[SampleId, ...]:
        """Identities of the samples that made it; a stand-in's is its own."""
        rows = order.indices.copy()
        for item, row in loaded.stand_ins.items():
            rows[item] = row
        return self.plan.sample_ids(rows[loaded.kept(len(rows))])

    def _replacement(self, order: WorkOrder, item: int, refused: Refused, clock: StageClock) -> tuple[int, Any] | None:
        """Applies the policy: None to skip, or a stand-in drawn by key; raises where it says so or draws are spent."""
        policy = self.incomplete_policy if refused.is_incomplete else self.policy
        if policy is not None and not isinstance(policy, Replace):
            return None
        epoch, position = int(order.epochs[item]), int(order.positions[item])
        for attempt in range(0 if policy is None else policy.max_attempts):
            index = derive_key("replace", order.seed, epoch, position, attempt) % len(self.plan)
            if index == int(order.indices[item]):
                continue
            with contextlib.suppress(Refused):
                sample = self._preparation.sample(order, item, index, None, clock)
                if sample is not FILTERED:
                    return index, sample
        raise refused.error from refused.error.__cause__

    def _refusal(self, order: WorkOrder, item: int, refused: Refused, stand_in: int | None) -> Refusal:
        text = f"{type(refused.error).__name__}: {str(refused.error).partition(chr(10))[0]}"
        return self._note(order, item, refused.where.stage or "", text, stand_in)

    def _note(self, order: WorkOrder, item: int, stage: str, error: str, stand_in: int | None = None) -> Refusal:
        index = int(order.indices[item])
        return Refusal(
            sample_id=self.plan.sample_id(index),
            index=index,
            path=self.plan.locate(index),
            epoch=int(order.epochs[item]),
            position=int(order.positions[item]),
            stage=stage,
            error=error,
            is_pad=bool(order.is_pad[item]),
            replaced_by=None if stand_in is None else self.plan.sample_id(stand_in),
        )

    # Batches.

    def _collate(self, order: WorkOrder, loaded: _Loaded, clock: StageClock) -> Any:
        """Joins samples; our own failure becomes a CollateError with ids, the user's keeps its type and gains a note."""
        if self._collate_may_draw:
            generators.reseed(batch_key("collate", order))
        try:
            started_s = time.perf_counter()
            batch = self._join(loaded.samples)
            clock.add("collate", time.perf_counter() - started_s, len(loaded.samples))
            # A user's own collate may rename what it likes.
            if self.contract is not None and self.is_batched and self._collate_is_ours:
                self.contract.require_batch(batch, self._ids(order, loaded))
        except Exception as error:
            where = dataclasses.replace(self.where(order, None), stage="collate", worker=this_worker())
            ids = self._ids(order, loaded)
            explained = explain_failure(loaded.samples, ids, error, where=where) if self._collate_is_ours else None
            if explained is not None:
                raise explained from error
            shown = ", ".join(map(str, ids[:8])) + (" and more" if len(ids) > 8 else "")
            annotate(error, where, do=f"look at the samples of this batch: {shown}")
            raise
        return batch

    def _join(self, samples: list[Any]) -> Any:
        if not self.is_batched:
            return self.collate(samples[0])
        if not self._collate_is_ours:
            return self.collate(samples)
        # What leaves the process is a pickle, which may say of arrays that they arrive as tensors.
        if is_sent_away() and "torch" not in sys.modules and self.collate is default_collate and self.contract is None:
            with contextlib.suppress(NotJoined):
                return _for_the_result(join_as_arrays, samples)
        return _for_the_result(self.collate, samples)

    def _note_left_out(self, order: WorkOrder, loaded: _Loaded, batch: Any) -> None:
        """Accounts for a common habit: a data set returns None for a bad sample, and collate_fn leaves the Nones out.

        Only where the size of the batch proves it; otherwise collate has a reason to want them, and all ids stand.
        """
        is_none = [sample is None for sample in loaded.samples]
        if not any(is_none) or leading_size(batch) != len(is_none) - sum(is_none):
            return
        kept = loaded.kept(len(order.indices))
        for place in reversed([place for place, none in enumerate(is_none) if none]):
            text = "the data set returned None, and collate_fn left it out"
            loaded.refusals.append(self._note(order, kept[place], "collate", text))
            loaded.absent.add(kept[place])
            loaded.stand_ins.pop(kept[place], None)
            del loaded.samples[place]


def _read_each(read: Callable[[int], Any], keys: Sequence[int], samples: list[Any], first: int, mark: Mark) -> None:
    """Appends one sample per key; after a failure the number of samples says which one failed."""
    keep = samples.append
    if mark is no_mark:
        for key in keys:
            keep(read(key))
        return
    for item, key in enumerate(keys, first):
        mark(item)
        keep(read(key))


class _WholeDelivery(Delivery):
    """The delivery of a batch that holds every sample of its order, and no other; on its way, only what is its own."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        batch = fold(self.batch) if protocol >= 5 else self.batch
        times = [(time.stage, time.wall_s, time.num_samples) for time in self.stage_times]
        return _received, (batch, len(self.kept), times)


def _for_the_result(make: Callable[[Any], Any], of: Any) -> Any:
    """Makes a batch, in memory from which it is sent if there is some."""
    if not is_sent_away():
        return make(of)
    with for_the_result():
        return make(of)


def _whole_delivery(batch: Any, num_samples: int, stage_times: tuple[StageTime, ...]) -> Delivery:
    sample_ids, kept, is_replaced = _whole_columns(num_samples)
    return _WholeDelivery(
        batch=batch, sample_ids=sample_ids, kept=kept, is_replaced=is_replaced, stage_times=stage_times
    )


def _received(batch: Any, num_samples: int, times: list[tuple[str, float, int]]) -> Delivery:
    return _whole_delivery(batch, num_samples, tuple(itertools.starmap(StageTime, times)))


@functools.lru_cache(maxsize=8)
def _whole_columns(num_samples: int) -> tuple[Any, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """What all whole deliveries of one size have in common; nobody writes to it."""
    kept, is_replaced = np.arange(num_samples), np.zeros(num_samples, dtype=np.bool_)
    kept.flags.writeable = is_replaced.flags.writeable = False
    return WholeOrder(num_samples), kept, is_replaced


@dataclasses.dataclass(slots=True)
class _Loaded:
    """The samples of one order that made it, and what became of those that did not."""

    samples: list[Any] = dataclasses.field(default_factory=list)
    """In the order of the order, without the absent ones."""
    absent: set[int] = dataclasses.field(default_factory=set)
    """Places in the order without a sample."""
    stand_ins: dict[int, int] = dataclasses.field(default_factory=dict)
    """Place in the order -> row of the sample that stands in for its own."""
    refusals: list[Refusal] = dataclasses.field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """True if every sample of the order made it."""
        return not (self.absent or self.stand_ins or self.refusals)

    def kept(self, num_places: int) -> list[int]:
        """Returns the places in the order that have a sample."""
        return [place for place in range(num_places) if place not in self.absent]
