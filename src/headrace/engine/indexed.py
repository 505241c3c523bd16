"""Tier A: data with row numbers. Orders, batches and states are arithmetic; any of them can be found again at once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.contract import Contract
from headrace.contract.breach import require_none
from headrace.engine.accounting import Account
from headrace.engine.arguments import Arguments
from headrace.engine.batch import BatchInfo, is_whole
from headrace.engine.failures import parse_policy
from headrace.engine.fetch import FetchTask
from headrace.engine.order.batches import BatchPlan, ListedBatches, Pass
from headrace.engine.order.blocks import blocks
from headrace.engine.order.cursor import Cursor
from headrace.engine.order.ledger import Ledger
from headrace.engine.order.orders import ListedOrder
from headrace.engine.passes import Run
from headrace.engine.plan import Plan
from headrace.engine.relay import Relay
from headrace.engine.samplers import BatchListing, EpochSampler, order_for
from headrace.engine.transform import global_generators as generators
from headrace.engine.work import Delivery, WorkOrder
from headrace.engine.worker_setup import WorkerSetup
from headrace.errors import (
    ConfigurationError,
    EmptyBatch,
    GlobalRandomness,
    SampleId,
    SourceError,
    Where,
)
from headrace.keys import derive_key
from headrace.protocols import Order, Runner

__all__ = ["IndexedLoading"]

NUM_PROBED = 8
"""Samples tried before threads start, to see whether they draw from global generators: each may be slow to read."""


class IndexedLoading:
    """How a loader loads map-style data."""

    def __init__(
        self,
        plan: Plan,
        arguments: Arguments,
        *,
        collate: Callable[[Any], Any],
        contract: Contract | None,
        seed: int,
        worker_init_fn: Callable[[int], None] | None,
        dataset: Any,
    ) -> None:
        if len(plan) == 0:
            raise SourceError(
                "the data set is empty: its length is 0",
                where=Where(path=repr(plan)),
                why="probably a wrong folder, a filter that leaves nothing, or a download that did not happen",
            )
        if contract is not None:
            require_none(contract.check_size(len(plan)))
        self.plan = plan
        self._arguments = arguments
        self._policy = arguments.policy
        if self._policy is None and contract is not None and contract.incomplete != "refuse":
            self._policy = parse_policy(contract.incomplete)
        self._batch_listing: BatchListing | None = None
        self.order = self._make_order(seed)
        self._batches = self._make_batches() if arguments.batch_sampler is None else None
        in_process = arguments.resolved_runner in {"processes", "auto"}
        shares_process = arguments.resolved_runner in {"threads", "host"}
        self.task = FetchTask(
            plan=plan,
            collate=collate,
            is_batched=arguments.batch_size is not None or self._batch_listing is not None,
            policy=arguments.policy,
            incomplete_policy=self._policy,
            contract=contract,
            rank=arguments.effective_rank,
            worker_setup=WorkerSetup(dataset=dataset, seed=seed, init=worker_init_fn) if in_process else None,
            reseeds=not shares_process,
        )
        self._is_probed = not shares_process

    def _make_order(self, seed: int) -> Order:
        given = self._arguments
        if given.batch_sampler is None:
            return order_for(given.sampler, shuffle=bool(given.shuffle), num_samples=len(self.plan), seed=seed)
        self._batch_listing = BatchListing(given.batch_sampler)
        kind = f"batch_sampler:{type(given.batch_sampler).__name__}"
        num_positions = len(self._batch_listing(seed, 0))
        if num_positions == 0:
            raise ConfigurationError(f"the batch sampler {type(given.batch_sampler).__name__} yields no batch")
        return ListedOrder(kind, self._batch_listing, num_positions, num_samples=len(self.plan))

    def _make_batches(self) -> BatchPlan:
        given = self._arguments
        rank, world_size, num_positions = given.effective_rank, given.effective_world_size, len(self.order)
        plan = BatchPlan(
            num_positions, given.batch_size or 1, rank=rank, world_size=world_size, tail=given.resolved_tail
        )
        if plan.num_batches_full == 0 and given.resolved_tail == "drop":
            raise ConfigurationError(
                f"no batches: {num_positions:,} samples, batch_size={given.batch_size:,}, and the incomplete last "
                "batch is dropped",
                do=["drop_last=False    to deliver it", f"batch_size={num_positions}    or less"],
            )
        return plan

    # One pass.

    def num_batches(self, seed: int, epoch: int) -> int:
        """Batches of a whole epoch: what `len(loader)` says."""
        if self._batch_listing is not None:
            return len(self._batch_listing.sizes(seed, epoch))
        assert self._batches is not None
        return self._batches.num_batches_full

    def begin(self, start: Cursor, runner: Runner, relay: Relay[WorkOrder, Delivery] | None = None) -> Run:
        """Returns the pass that goes on from that place; starts nothing.

        Args:
            start: The place.
            runner: Who executes.
            relay: Of the pass before: gone on with if its workers have begun this very pass, else closed.
        """
        self._probe(start.seed)
        planned = self._plan_pass(start)
        end = self._end(planned, start)
        if relay is not None and not relay.goes_on_from(start):
            relay.release()
            relay = None
        if relay is None:
            relay = Relay(functools.partial(runner.run, self.task), self._orders_from(start))
        account = Account(
            planned.epoch,
            self._policy,
            ledger=Ledger.of(planned),
            runner=runner.name,
            num_workers=runner.num_workers,
        )
        leg = relay.leg(planned.num_batches if self._runs_ahead else None, end)
        return Run(
            epoch=planned.epoch,
            start=start,
            end=end,
            account=account,
            batches=self._deliver(planned, leg, account),
            relay=relay if self._runs_ahead else None,
        )

    def _end(self, planned: Pass, start: Cursor) -> Cursor:
        """Where the pass after this one begins."""
        epoch, consumed = divmod(planned.stop, len(self.order))
        return dataclasses.replace(start, epoch=epoch, consumed=consumed, order_digest=None)

    @property
    def _runs_ahead(self) -> bool:
        """True if workers may begin the next pass before it is asked for.

        Only workers that stay: they hold the data set as it was when they started, so nothing that the caller does to it
        between two passes could have been meant for them. And not if a sampler lists the order, which may be told
        something at the beginning of each pass.
        """
        return self._arguments.persistent_workers and not isinstance(self.order, ListedOrder)

    def _plan_pass(self, start: Cursor) -> Pass:
        if self._batches is not None:
            return self._batches.begin(start.epoch, start.consumed)
        assert self._batch_listing is not None
        sizes = functools.partial(self._batch_listing.sizes, start.seed)
        given = self._arguments
        listed = ListedBatches(sizes, rank=given.effective_rank, world_size=given.effective_world_size)
        return listed.begin(start.epoch, start.consumed)

    def _deliver(
        self, planned: Pass, leg: Generator[tuple[WorkOrder, Delivery, float], None, None], account: Account
    ) -> Generator[tuple[Any, BatchInfo], None, None]:
        """Yields every batch of the pass that holds a sample, booked."""
        with contextlib.closing(leg):
            for order, delivery, wait_s in leg:
                account.enter(order, delivery, wait_s)
                if not delivery.sample_ids:
                    self._check_empty(order)
                    continue
                yield delivery.batch, self._info(planned, order, delivery)
        account.close()

    def _check_empty(self, order: WorkOrder) -> None:
        """A batch of refused samples only is passed over; not with several ranks, which would fall out of step."""
        if self._arguments.effective_world_size > 1:
            raise EmptyBatch(
                f"every sample of this rank's part of batch {order.step} was refused; without it the ranks would take "
                "different numbers of steps",
                where=self.task.where(order, None),
                do="on_error=hr.Replace()    which delivers another sample in place of each",
            )

    def _info(self, planned: Pass, order: WorkOrder, delivery: Delivery) -> BatchInfo:
        """Identity and state of a batch; made from here when they are asked for."""
        # A sampler's digest is taken now, while its list of this epoch is there.
        is_listed = isinstance(self.order, ListedOrder)
        digest = self._digest(order.seed, planned.cursor_after(order.step)[0]) if is_listed else None
        kept, is_replaced = delivery.kept, delivery.is_replaced  # and not the delivery, which holds the batch
        sample_ids = None if is_whole(delivery.sample_ids) else delivery.sample_ids

        def make(name: str) -> Any:
            match name:
                case "sample_ids":
                    return self.plan.sample_ids(order.indices) if sample_ids is None else sample_ids
                case "cursor":
                    return self._cursor_with(digest, order.seed, *planned.cursor_after(order.step))
                case "positions":
                    return order.positions[kept]
                case "is_pad":
                    return order.is_pad[kept]
                case _:
                    return is_replaced.copy()

        return BatchInfo(epoch=planned.epoch, step=order.step, make=make)

    def _orders_from(self, start: Cursor) -> Generator[WorkOrder, None, None]:
        """Yields this rank's work orders of the pass from there, and of all passes after it if workers run ahead."""
        while True:
            planned = self._plan_pass(start)
            yield from self._orders(planned, start.seed)
            if not self._runs_ahead:
                return
            start = self._end(planned, start)

    def _orders(self, planned: Pass, seed: int) -> Iterator[WorkOrder]:
        """Yields this rank's work orders of a pass, one per global batch."""
        for block in blocks(planned):
            rows = block.rows
            indices = self.indices(seed, rows.epochs, rows.positions)
            for step, part in block:
                yield WorkOrder(
                    step=step,
                    seed=seed,
                    indices=indices[part],
                    epochs=rows.epochs[part],
                    positions=rows.positions[part],
                    is_pad=rows.is_pad[part],
                )

    def indices(
        self, seed: int, epochs: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Returns the row number at each (epoch, position)."""
        if epochs[0] == epochs[-1]:  # epochs never go back within a batch
            return self.order.indices(seed, int(epochs[0]), positions)
        indices = np.empty_like(positions)
        for epoch in np.unique(epochs).tolist():
            there = epochs == epoch
            indices[there] = self.order.indices(seed, epoch, positions[there])
        return indices

    # States.

    def cursor(self, seed: int, epoch: int, consumed: int) -> Cursor:
        """Returns the state at that place."""
        return self._cursor_with(self._digest(seed, epoch), seed, epoch, consumed)

    def _digest(self, seed: int, epoch: int) -> str | None:
        return self.order.digest(seed, epoch) if isinstance(self.order, ListedOrder) else None

    def _cursor_with(self, digest: str | None, seed: int, epoch: int, consumed: int) -> Cursor:
        return Cursor(seed=seed, epoch=epoch, consumed=consumed, fingerprint=self._fingerprint(), order_digest=digest)

    def check_fits(self, saved: Cursor) -> None:
        """Refuses a state of another data set, plan or order; prints both sides."""
        saved.check_fits(self.cursor(saved.seed, saved.epoch, 0))
        self._plan_pass(saved)  # refuses a place that is none, now and not at the first batch

    def _fingerprint(self) -> dict[str, str | int]:
        if not hasattr(self, "_fingerprint_once"):
            self._fingerprint_once = {**self.plan.fingerprint(), "order": self.order.kind}
        return self._fingerprint_once

    # For the loader's own attributes.

    def replay(self, sample_id: SampleId, seed: int, epoch: int) -> Any:
        """Returns one sample as that epoch delivers it."""
        return self.task.replay(self.plan.index_of(sample_id), seed, epoch)

    def sampler(self, seed: int, epoch: int) -> EpochSampler:
        """Returns an iterable over the row numbers of an epoch."""
        return EpochSampler(self.order, seed, epoch)

    def describe(self) -> str:
        """Returns what is loaded, in a few words."""
        return f"{self.plan!r}, order={self.order.kind!r}"

    # Threads.

    def _probe(self, seed: int) -> None:
        """Refuses threads for code that draws from global generators: no reseeding can make that repeatable.

        A few samples are tried, so a draw that only some other sample makes is not seen here.
        """
        if self._is_probed or not self.plan.runs_user_code:
            return
        self._is_probed = True
        last = len(self.plan) - 1
        for index in sorted({round(k * last / max(NUM_PROBED - 1, 1)) for k in range(NUM_PROBED)}):
            with generators.keyed(derive_key("probe", seed, index)):
                before = generators.capture()
                try:
                    self.plan.sample(index, seed=seed)
                except Exception:  # noqa: S112 - it will fail in its place, by the error policy
                    continue
                moved = generators.moved_since(before)
            if moved:
                raise GlobalRandomness(
                    f"this data draws from {', '.join(moved)}, which all threads share: with "
                    f"runner={self._arguments.resolved_runner!r} the draws would depend on timing",
                    where=Where(sample_id=self.plan.sample_id(index), index=index),
                    do=[
                        "runner='processes'    where global generators are reseeded for each sample",
                        "take a parameter `rng` in the stage's function and draw from that",
                    ],
                )
