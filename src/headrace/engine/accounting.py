"""The books of one pass: ledger, quarantine, budget and times, fed with each delivery in the order of hand-over."""

from __future__ import annotations

import numpy as np

from headrace.engine.batch import is_whole
from headrace.engine.failures import Budget, Policy
from headrace.engine.order.ledger import Ledger
from headrace.engine.work import Delivery, Refusal, WorkOrder
from headrace.observe import LoaderStats, StageTime

__all__ = ["Account"]


class Account:
    """What one pass of one rank delivered, refused and cost."""

    def __init__(self, epoch: int, policy: Policy, *, ledger: Ledger | None, runner: str, num_workers: int) -> None:
        self.epoch = epoch
        self.ledger = ledger
        self.quarantine: list[Refusal] = []
        self._budget = Budget(policy)
        self._runner, self._num_workers = runner, num_workers
        self._num_batches = 0
        self._num_samples = 0
        self._first_batch_s: float | None = None
        self._wait_s = 0.0
        self._wall_s: dict[str, float] = {}
        self._stage_samples: dict[str, int] = {}

    def enter(self, order: WorkOrder, delivery: Delivery, wait_s: float) -> None:
        """Books one delivery; raises TooManyRefused if the policy's budget is spent."""
        if self.ledger is not None:
            self._enter_ledger(self.ledger, order, delivery)
        if delivery.refusals:
            self.quarantine.extend(delivery.refusals)
        self._budget.spend(len(order.indices), delivery.refusals)
        self.count(delivery, wait_s)

    def count(self, delivery: Delivery, wait_s: float) -> None:
        """Counts one delivery and its times."""
        self._num_batches += delivery.batch is not None
        self._num_samples += len(delivery.sample_ids)
        if self._first_batch_s is None:
            self._first_batch_s = wait_s
        else:
            self._wait_s += wait_s
        for time in delivery.stage_times:
            self._wall_s[time.stage] = self._wall_s.get(time.stage, 0.0) + time.wall_s
            self._stage_samples[time.stage] = self._stage_samples.get(time.stage, 0) + time.num_samples

    def close(self) -> None:
        """Checks the books at the end of a whole pass; raises LedgerError if they do not balance."""
        if self.ledger is not None:
            self.ledger.check(complete=self.ledger.world_size == 1)

    @staticmethod
    def _enter_ledger(ledger: Ledger, order: WorkOrder, delivery: Delivery) -> None:
        # Epochs never go back within a part, and repeats come last.
        epochs, epoch = order.epochs, order.epochs.item(0)
        if is_whole(delivery.sample_ids) and epoch == epochs.item(-1) and not order.is_pad.item(-1):
            ledger.record_whole(epoch, order.positions, order.indices)
            return
        kept, num_rows = delivery.kept, len(order.indices)
        delivered, replaced = np.zeros((2, num_rows), dtype=np.bool_)
        delivered[kept], replaced[kept] = ~delivery.is_replaced, delivery.is_replaced
        # Counted from the list of refusals and not from the rows, so that the ledger compares two accounts.
        num_skipped = sum(not refusal.is_pad for refusal in delivery.refusals)
        ledger.record(
            epochs,
            order.positions,
            order.indices,
            order.is_pad,
            delivered=delivered,
            replaced=replaced,
            num_skipped=num_skipped,
        )

    def stats(self) -> LoaderStats:
        """Returns the times and counts so far."""
        return LoaderStats(
            epoch=self.epoch,
            num_batches=self._num_batches,
            num_samples=self._num_samples,
            first_batch_s=self._first_batch_s,
            wait_s=self._wait_s,
            stages=tuple(
                StageTime(stage, wall_s, self._stage_samples[stage]) for stage, wall_s in self._wall_s.items()
            ),
            runner=self._runner,
            num_workers=self._num_workers,
        )
