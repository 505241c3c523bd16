"""What a worker does with a work order: prepare its samples, each by the error policy, and collate; one delivery back."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.contract import Contract
from headrace.engine.batch import leading_size
from headrace.engine.collate import ContractCollate, default_collate, default_convert, explain_failure
from headrace.engine.failures import Policy, Replace
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
from headrace.engine.transform import global_generators as generators
from headrace.engine.work import Delivery, Refusal, WorkOrder
from headrace.errors import SampleId, Where, annotate
from headrace.keys import derive_key
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
        self._preparation = Preparation(plan=self.plan, contract=self.contract, rank=self.rank, may_draw=may_draw)

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
        clock = StageClock()
        loaded = self._load_without_draws(order, mark, clock)
        with self._own_generators(order, may_draw=loaded is None or self._collate_may_draw):
            if loaded is None:
                loaded = self._load(order, mark, clock)
            batch = self._collate(order, loaded, clock) if loaded.samples else None
        self._note_left_out(order, loaded, batch)
        return Delivery(
            batch=batch,
            sample_ids=tuple(loaded.ids),
            kept=np.asarray(loaded.kept, dtype=np.int64),
            is_replaced=np.asarray(loaded.is_replaced, dtype=np.bool_),
            refusals=tuple(loaded.refusals),
            stage_times=clock.times(),
        )

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
        with self._own_generators(order, may_draw=self._preparation.may_draw):
            try:
                sample = self._preparation.sample(order, 0, index, None, StageClock())
            except Refused as refused:
                raise refused.error from refused.error.__cause__
        return None if sample is FILTERED else sample

    @staticmethod
    def _own_generators(order: WorkOrder, *, may_draw: bool) -> contextlib.AbstractContextManager[None]:
        """Puts back the caller's global generators afterwards, where the code may draw from them."""
        return generators.keyed(batch_key("batch", order)) if may_draw else contextlib.nullcontext()

    @property
    def _collate_may_draw(self) -> bool:
        return self.reseeds and not self._collate_is_ours

    @property
    def _collate_is_ours(self) -> bool:
        return self.collate in {default_collate, default_convert} or isinstance(self.collate, ContractCollate)

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
        loaded = _Loaded()
        records = self._preparation.records(order, mark, clock)
        for item, index in enumerate(order.indices.tolist()):
            mark(item)
            row = index
            try:
                sample = self._preparation.sample(order, item, index, records, clock)
            except Refused as refused:
                found = self._replacement(order, item, refused, clock)
                loaded.refusals.append(self._refusal(order, item, refused, None if found is None else found[0]))
                if found is None:
                    continue
                row, sample = found
            if sample is FILTERED:
                text = "the stages dropped it, which the contract allows"
                loaded.refusals.append(self._note(order, item, "transform", text))
                continue
            loaded.samples.append(sample)
            loaded.ids.append(self.plan.sample_id(row))
            loaded.kept.append(item)
            loaded.is_replaced.append(row != index)
        return loaded

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
        is_ours = self._collate_is_ours
        if self._collate_may_draw:
            generators.reseed(batch_key("collate", order))
        try:
            with clock.stage("collate", len(loaded.samples)):
                batch = self.collate(loaded.samples) if self.is_batched else self.collate(loaded.samples[0])
            if self.contract is not None and self.is_batched and is_ours:  # a user's own may rename what it likes
                self.contract.require_batch(batch, loaded.ids)
        except Exception as error:
            where = dataclasses.replace(self.where(order, None), stage="collate", worker=this_worker())
            explained = explain_failure(loaded.samples, loaded.ids, error, where=where) if is_ours else None
            if explained is not None:
                raise explained from error
            shown = ", ".join(map(str, loaded.ids[:8])) + (" and more" if len(loaded.ids) > 8 else "")
            annotate(error, where, do=f"look at the samples of this batch: {shown}")
            raise
        return batch

    def _note_left_out(self, order: WorkOrder, loaded: _Loaded, batch: Any) -> None:
        """Accounts for a common habit: a data set returns None for a bad sample, and collate_fn leaves the Nones out.

        Only where the size of the batch proves it; otherwise collate has a reason to want them, and all ids stand.
        """
        is_none = [sample is None for sample in loaded.samples]
        if not any(is_none) or leading_size(batch) != len(is_none) - sum(is_none):
            return
        for place in reversed([place for place, none in enumerate(is_none) if none]):
            text = "the data set returned None, and collate_fn left it out"
            loaded.refusals.append(self._note(order, loaded.kept[place], "collate", text))
            for column in (loaded.samples, loaded.ids, loaded.kept, loaded.is_replaced):
                del column[place]


@dataclasses.dataclass(slots=True)
class _Loaded:
    """The samples of one order that made it, column by column, and those that did not."""

    samples: list[Any] = dataclasses.field(default_factory=list)
    ids: list[SampleId] = dataclasses.field(default_factory=list)
    kept: list[int] = dataclasses.field(default_factory=list)
    is_replaced: list[bool] = dataclasses.field(default_factory=list)
    refusals: list[Refusal] = dataclasses.field(default_factory=list)
