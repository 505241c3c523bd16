"""What a resumed run may promise: one of three words, with the reasons."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

__all__ = ["Promise", "Restored", "promise_of"]


class Promise(enum.StrEnum):
    """How a resumed run relates to one that was never interrupted."""

    BIT_EXACT = "BIT-EXACT"
    """Every later loss, parameter and optimizer value is the same to the last bit, provided that the steps themselves repeat."""
    DATA_EXACT = "DATA-EXACT"
    """The same samples in the same batches with the same random draws; numbers may differ in the last bits."""
    CLOSE = "CLOSE"
    """Something of the state could not be brought back: a fair continuation, and not the same run."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What `Checkpointer.restore` did."""

    path: str
    """The checkpoint."""
    step: int
    """Optimizer steps done."""
    epoch: int
    """Epoch that the run goes on in, from 0."""
    batch: int
    """Batches of that epoch that were used already."""
    promise: Promise
    lost: tuple[str, ...] = ()
    """What could not be brought back, in words. Empty unless CLOSE."""
    differs: tuple[str, ...] = ()
    """What is otherwise than when it was saved, and may change the last bits."""
    is_checked: bool = False
    """Whether the run had tried that its steps repeat (`Checkpointer.check`)."""
    refused: tuple[str, ...] = ()
    """Newer checkpoints that were passed over because they are damaged, and how."""

    def __str__(self) -> str:
        place = (
            f"step {self.step:,}, epoch {self.epoch}, {self.batch:,} batches into it"
            if self.batch
            else (f"step {self.step:,}, start of epoch {self.epoch}")
        )
        unchecked = self.promise is Promise.BIT_EXACT and not self.is_checked
        promise = f"{self.promise}, if its steps repeat (not checked)" if unchecked else self.promise
        lines = [f"resumed from {self.path}: {place}: {promise}"]
        lines += [f"  lost: {text}" for text in self.lost]
        lines += [f"  differs: {text}" for text in self.differs]
        lines += [f"  passed over: {text}" for text in self.refused]
        return "\n".join(lines)


def promise_of(lost: Sequence[str], differs: Sequence[str]) -> Promise:
    """Returns the strongest promise that holds."""
    return Promise.CLOSE if lost else Promise.DATA_EXACT if differs else Promise.BIT_EXACT
