"""What travels between the loader and its workers: a work order out, a delivery back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.engine.folding import fold
from headrace.errors import SampleId
from headrace.observe import StageTime

__all__ = ["Delivery", "Refusal", "WorkOrder"]


@dataclasses.dataclass(slots=True, kw_only=True)  # not frozen: made per batch, where that costs 1 us
class WorkOrder:
    """One rank's part of one global batch: which rows to load, and under which names. B rows."""

    step: int
    """Number of the global batch within the pass, from 0."""
    seed: int
    """Seed of the loader; random stages derive their keys from it."""
    indices: npt.NDArray[np.int64]
    """(B,) row numbers in the source."""
    epochs: npt.NDArray[np.int64]
    """(B,) epoch of each row: the same for all except where a `carry` batch crosses the end of an epoch."""
    positions: npt.NDArray[np.int64]
    """(B,) position of each row within its epoch."""
    is_pad: npt.NDArray[np.bool_]
    """(B,) True for repeats that only fill a batch up; evaluation leaves them out."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # As few plain values: an array costs pickle five microseconds, and most epochs and repeats are all the same.
        epoch = self.epochs[0] if len(self.epochs) and (self.epochs == self.epochs[0]).all() else None
        epochs = self.epochs.tobytes() if epoch is None else int(epoch)
        is_pad = self.is_pad.tobytes() if self.is_pad.any() else None
        return _order, (self.step, self.seed, self.indices.tobytes(), epochs, self.positions.tobytes(), is_pad)


def _order(
    step: int, seed: int, indices: bytes, epochs: bytes | int, positions: bytes, is_pad: bytes | None
) -> WorkOrder:
    """Returns the order. Its columns are copies: torch warns of memory that it could not write to."""
    rows = np.frombuffer(indices, np.int64).copy()
    return WorkOrder(
        step=step,
        seed=seed,
        indices=rows,
        epochs=np.full(len(rows), epochs) if isinstance(epochs, int) else np.frombuffer(epochs, np.int64).copy(),
        positions=np.frombuffer(positions, np.int64).copy(),
        is_pad=np.zeros(len(rows), np.bool_) if is_pad is None else np.frombuffer(is_pad, np.bool_).copy(),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One sample that could not be loaded and was skipped or replaced: a line of the quarantine."""

    sample_id: SampleId
    index: int
    """Row number in the source."""
    path: str | None
    """What the record was read from, for people."""
    epoch: int
    position: int
    """Position within the epoch."""
    stage: str
    """Stage that failed."""
    error: str
    """Type and message of the exception."""
    is_pad: bool = False
    """True if it was asked for only as a repeat that fills a batch up."""
    replaced_by: SampleId | None = None
    """Identity of the sample delivered in its place; None = skipped."""


@dataclasses.dataclass(slots=True, kw_only=True)  # not frozen: made per batch, where that costs 1 us
class Delivery:
    """What a worker sends back for one work order. K <= B samples."""

    batch: Any
    """What collate returned; None if every sample was refused."""
    sample_ids: tuple[SampleId, ...]
    """(K,) identities, in the order of the batch; a replacement stands under its own identity."""
    kept: npt.NDArray[np.int64]
    """(K,) places in the work order (0..B-1) that the samples of the batch fill."""
    is_replaced: npt.NDArray[np.bool_]
    """(K,) True where another sample stands in for a refused one."""
    refusals: tuple[Refusal, ...] = ()
    stage_times: tuple[StageTime, ...] = ()
    exhausted: bool = False
    """Only for iterable data sets: this worker's stream has ended."""

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        batch = fold(self.batch) if protocol >= 5 else self.batch
        parts = (self.sample_ids, self.kept, self.is_replaced, self.refusals, self.stage_times, self.exhausted)
        return _delivery, (batch, *parts)


def _delivery(batch: Any, *parts: Any) -> Delivery:
    sample_ids, kept, is_replaced, refusals, stage_times, exhausted = parts
    return Delivery(
        batch=batch,
        sample_ids=sample_ids,
        kept=kept,
        is_replaced=is_replaced,
        refusals=refusals,
        stage_times=stage_times,
        exhausted=exhausted,
    )
