"""What was handed over in one pass, counted and hashed: planned = delivered + skipped + dropped.

Each rank keeps its own ledger; merged over all ranks they account for every position of the pass. Two hashes say what
counts cannot: `order_hash` stands for which sample came at which position, `id_hash` for which samples came at all. Both
are sums over the samples that were handed over (`row_hash`), so they do not depend on how ranks and batches divided the
work. Their algorithm is frozen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.order.passes import Pass
from headrace.engine.order.row_hash import RowHashes
from headrace.errors import ConfigurationError, LedgerError, Where

__all__ = ["Ledger"]

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(eq=False)
class Ledger:
    """The account of one pass on one rank, or of all its ranks once merged. Not for several threads at once.

    Cost: that of the hashes, see `RowHashes`, and half a microsecond for each `record_whole`, ten for each `record`.
    """

    pass_start: int
    """Absolute position of the first sample that the pass accounts for."""
    pass_stop: int | None
    """Absolute position after the last one; None = not known beforehand (an iterable data set)."""
    rank: int | None = 0
    """Whose account this is; None = all ranks, merged."""
    world_size: int = 1
    """Number of ranks."""
    _: dataclasses.KW_ONLY
    epoch: int
    """Number of the pass."""
    dropped: int = 0
    """Positions of the pass that no rank hands over (tail `drop`); the same on every rank, and counted once."""
    passed_over: int = 0
    """Under `drop`, positions at the end of the epoch before that the resumed state had left. The pass that ended there
    counted them as dropped; if the batch size has grown since, no pass did, and this is their only trace."""
    planned: int = dataclasses.field(default=0, init=False)
    """Positions that came up so far; flagged repeats are not positions of the pass."""
    delivered: int = dataclasses.field(default=0, init=False)
    """Positions whose own sample was handed over."""
    skipped: int = dataclasses.field(default=0, init=False)
    """Positions whose own sample was refused, whether or not another came in its place."""
    replaced: int = dataclasses.field(default=0, init=False)
    """Samples handed over in place of refused ones."""
    padded: int = dataclasses.field(default=0, init=False)
    """Flagged repeats handed over."""
    _hashes: RowHashes = dataclasses.field(default_factory=RowHashes, init=False, repr=False)

    @classmethod
    def of(cls, one_pass: Pass) -> Ledger:
        """Returns the empty ledger of a pass on its rank."""
        return cls(
            one_pass.start,
            one_pass.stop,
            one_pass.rank,
            one_pass.world_size,
            epoch=one_pass.epoch,
            dropped=one_pass.num_dropped,
            passed_over=one_pass.num_passed_over,
        )

    def record_whole(self, epoch: int, positions: Integers, indices: Integers) -> None:
        """Adds a part of B rows of one epoch, all of them handed over as they are and none a flagged repeat.

        Args:
            epoch: Their epoch.
            positions: (B,) position within the epoch.
            indices: (B,) row number in the source.
        """
        num_rows = len(indices)
        self.planned += num_rows
        self.delivered += num_rows
        self._hashes.add(epoch, positions, indices)

    def record(
        self,
        epochs: Integers,
        positions: Integers,
        indices: Integers,
        is_pad: Flags,
        *,
        delivered: Flags | None = None,
        replaced: Flags | None = None,
        num_skipped: int = 0,
    ) -> None:
        """Adds what became of one part of B rows.

        Args:
            epochs: (B,) epoch of each row.
            positions: (B,) position within the epoch.
            indices: (B,) row number in the source.
            is_pad: (B,) True for flagged repeats.
            delivered: (B,) True where the row's own sample was handed over. Default: everywhere.
            replaced: (B,) True where another sample was handed over in its place. Default: nowhere.
            num_skipped: Refused samples among the rows that are no flagged repeats, counted apart from `delivered`
                (from the list of refusals), so that `check` compares two accounts.
        """
        is_own = ~is_pad
        self.planned += int(np.count_nonzero(is_own))
        self.skipped += num_skipped
        handed_over = np.ones_like(is_pad) if delivered is None else delivered
        if replaced is not None:
            self.replaced += int(np.count_nonzero(replaced & is_own))
            self.padded += int(np.count_nonzero(replaced & is_pad))
        self.padded += int(np.count_nonzero(handed_over & is_pad))
        is_own &= handed_over
        num_delivered = int(np.count_nonzero(is_own))
        self.delivered += num_delivered
        if num_delivered:
            for epoch, is_there in _by_epoch(epochs, is_own):
                self._hashes.add(epoch, positions[is_there], indices[is_there])

    @property
    def order_hash(self) -> str:
        """32 hexadecimal digits for the set of all delivered (epoch, position, row number): which sample came where."""
        return self._hashes.order

    @property
    def id_hash(self) -> str:
        """32 hexadecimal digits for the multiset of all delivered (epoch, row number), in whatever order."""
        return self._hashes.ids

    @classmethod
    def merge(cls, ledgers: Iterable[Ledger]) -> Ledger:
        """Returns the account of all ranks together.

        Raises:
            LedgerError: A rank is missing or there twice, or the ledgers are of different passes.
        """
        ledgers = list(ledgers)
        if not ledgers:
            raise LedgerError("there are no ledgers to merge")
        first = ledgers[0]
        for other in ledgers[1:]:
            if other._pass_key() != first._pass_key():
                raise LedgerError(
                    f"ledgers of different passes cannot be merged: rank {first.rank} has {first._pass_name()}, "
                    f"rank {other.rank} has {other._pass_name()}",
                )
        ranks = [ledger.rank for ledger in ledgers]
        wrong = [f"rank {rank} is missing" for rank in range(first.world_size) if rank not in ranks]
        wrong += [f"rank {rank} is there twice" for rank in dict.fromkeys(ranks) if ranks.count(rank) > 1]
        wrong += [f"rank {rank} is none of them" for rank in ranks if rank not in range(first.world_size)]
        if wrong:
            raise LedgerError(f"the ledgers of {first.world_size} ranks do not merge: {', '.join(wrong)}")
        whole = cls(
            first.pass_start,
            first.pass_stop,
            None,
            first.world_size,
            epoch=first.epoch,
            dropped=first.dropped,
            passed_over=first.passed_over,
        )
        for ledger in ledgers:
            for name in ("planned", "delivered", "skipped", "replaced", "padded"):
                setattr(whole, name, getattr(whole, name) + getattr(ledger, name))
            whole._hashes.include(ledger._hashes)
        return whole

    def check(self, *, complete: bool | None = None) -> None:
        """Passes if the account balances.

        Args:
            complete: Whether the pass must be over: every position of it accounted for. Needs the account of all ranks.
                Default: True for a merged ledger, False for that of one rank, which may be in the middle of its pass.

        Raises:
            LedgerError: A position is neither delivered nor skipped, or both, or never came up.
            ConfigurationError: `complete` is asked of one rank out of several.
        """
        where = Where(epoch=self.epoch, rank=self.rank)
        if self.planned != self.delivered + self.skipped:
            raise LedgerError(
                f"the ledger does not balance: {self.planned:,} planned, but {self.delivered:,} delivered + "
                f"{self.skipped:,} skipped = {self.delivered + self.skipped:,}",
                where=where,
            )
        if self.replaced > self.skipped:
            raise LedgerError(
                f"the ledger does not balance: {self.replaced:,} replaced, but only {self.skipped:,} skipped",
                where=where,
            )
        if complete is None:
            complete = self.rank is None
        if not complete or self.pass_stop is None:
            return
        if not self._is_whole:
            raise ConfigurationError(
                f"rank {self.rank} of {self.world_size} alone cannot tell whether a pass is complete",
                do="Ledger.merge(ledgers of all ranks).check()",
            )
        length = self.pass_stop - self.pass_start
        if self.planned + self.dropped != length:
            raise LedgerError(
                f"the ledger does not cover its pass: {length:,} positions, but {self.planned:,} planned + "
                f"{self.dropped:,} dropped = {self.planned + self.dropped:,}",
                where=where,
                why="the pass is not over" if self.planned + self.dropped < length else None,
            )

    def as_dict(self) -> dict[str, Any]:
        """Returns all counts and both hashes as plain values."""
        names = ("epoch", "pass_start", "pass_stop", "rank", "world_size")
        counts = ("planned", "delivered", "skipped", "dropped", "passed_over", "replaced", "padded")
        hashes = ("order_hash", "id_hash")
        return {name: getattr(self, name) for name in (*names, *counts, *hashes)}

    def __str__(self) -> str:
        # What is dropped belongs to the pass, so the line of one rank among several leaves it out.
        who = "" if self._is_whole else f", rank {self.rank} of {self.world_size}"
        dropped = f" + {self.dropped:,} dropped" if self._is_whole else ""
        planned = self.planned + (self.dropped if self._is_whole else 0)
        passed_over = f", {self.passed_over:,} of the epoch before passed over" if self.passed_over else ""
        return (
            f"epoch {self.epoch}{who}: {planned:,} planned = {self.delivered:,} delivered + {self.skipped:,} skipped"
            f"{dropped}; {self.replaced:,} replaced, {self.padded:,} padded{passed_over}; order {self.order_hash[:8]}"
        )

    @property
    def _is_whole(self) -> bool:
        return self.rank is None or self.world_size == 1

    def _pass_key(self) -> tuple[int, int, int | None, int, int]:
        return self.epoch, self.pass_start, self.pass_stop, self.world_size, self.dropped

    def _pass_name(self) -> str:
        stop = "the end" if self.pass_stop is None else f"{self.pass_stop:,}"
        return (
            f"epoch {self.epoch}, positions {self.pass_start:,} to {stop} on {self.world_size} ranks, "
            f"{self.dropped:,} dropped"
        )


def _by_epoch(epochs: Integers, is_own: Flags) -> list[tuple[int, Flags]]:
    """Returns each epoch and where its rows are; nearly always there is one."""
    if (epochs == epochs[0]).all():
        return [(int(epochs[0]), is_own)]
    return [(epoch, is_own & (epochs == epoch)) for epoch in np.unique(epochs).tolist()]
