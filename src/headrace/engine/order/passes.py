"""One pass over the samples: which rows each rank loads in each step. Arithmetic only.

Positions of all epochs stand on one line: position p of epoch e is the absolute position e * N' + p. A pass cuts a piece
of this line into batches. Rank r of R takes the contiguous part [r*T//R, (r+1)*T//R) of a batch of T rows, so that the
parts of all ranks in order are the batch, whether or not R divides T. Every rank makes the same number of steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Part", "Pass"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Which samples one rank loads for one step. B rows; B >= 1."""

    epochs: npt.NDArray[np.int64]
    """(B,) epoch of each row: one value, except where a `carry` batch crosses the end of an epoch."""
    positions: npt.NDArray[np.int64]
    """(B,) position of each row within its epoch."""
    is_pad: npt.NDArray[np.bool_]
    """(B,) True for repeats that only fill up; without them every position stands in one part of one step."""

    def __len__(self) -> int:
        return len(self.positions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass of one rank: the batches from the point where it begins to the end of its epoch.

    Made by `BatchPlan.begin` and `ListedBatches.begin`.
    """

    epoch: int
    """Number of this pass, from 0: the epoch in which its batches end."""
    num_positions: int
    """N', positions in one epoch."""
    edges: Sequence[int]
    """Absolute position where each batch begins, and one more where the last would end if it were full."""
    stop: int
    """Absolute position up to which this pass accounts: what lies before is handed over, refused or dropped."""
    fills_up: bool = False
    """True if a batch that reaches beyond `stop` is filled with flagged repeats; otherwise it is short."""
    rank: int = 0
    """This rank, from 0."""
    world_size: int = 1
    """R, number of ranks."""
    num_passed_over: int = 0
    """Positions that the state had left of the epoch before, too few for a batch under `drop`. The pass that ended
    there counted them as dropped; if the batch size has grown in between, none did, and this is the only trace."""

    @property
    def start(self) -> int:
        """Absolute position of the first sample that this pass accounts for."""
        return self.edges[0]

    @property
    def num_batches(self) -> int:
        """Steps of every rank."""
        return len(self.edges) - 1

    @property
    def dropped(self) -> range:
        """Positions within the epoch that this pass does not hand over."""
        return range(min(self.edges[-1], self.stop) - self._epoch_start, self.stop - self._epoch_start)

    @property
    def num_dropped(self) -> int:
        """Number of `dropped` positions."""
        return len(self.dropped)

    @property
    def num_carried(self) -> int:
        """Positions of this epoch that the next pass begins with; 0 except under `carry`."""
        return self._epoch_start + self.num_positions - self.stop

    @property
    def begins_at(self) -> tuple[int, int]:
        """(epoch, consumed) before the first batch; consumed in [0, N')."""
        return divmod(self.start, self.num_positions)

    def cursor_after(self, step: int) -> tuple[int, int]:
        """Returns (epoch, consumed) after that batch: a point where any plan may begin; consumed in [1, N'].

        `consumed` counts what was handed over. After the last batch of a `drop` pass it therefore stays below N': the
        same plan then begins the next epoch, while one with smaller batches still finds the dropped positions.

        Raises:
            IndexError: The pass has no such step.
        """
        reached = min(self._edges_of(step)[1], self.stop)
        epoch = (reached - 1) // self.num_positions
        return epoch, reached - epoch * self.num_positions

    def part(self, step: int) -> Part:
        """Returns what this rank loads for that step.

        A short batch of T < R positions leaves R - T ranks without a share. Each of them gets one flagged repeat of the
        batch's first sample, because a rank without a batch would fall a step behind and hang the others.

        Raises:
            IndexError: The pass has no such step.
        """
        first, last = self._edges_of(step)
        low, high = (first + rank * (last - first) // self.world_size for rank in (self.rank, self.rank + 1))
        if low == high:
            return self._rows(np.array([first - self._epoch_start]), np.array([True]))
        return self._span(low, high)

    def global_part(self, step: int) -> Part:
        """Returns the whole batch of that step, as one rank alone would load it.

        Raises:
            IndexError: The pass has no such step.
        """
        return self._span(*self._edges_of(step))

    @property
    def _epoch_start(self) -> int:
        return self.epoch * self.num_positions

    def _edges_of(self, step: int) -> tuple[int, int]:
        if not 0 <= step < self.num_batches:
            raise IndexError(f"step {step:,} of a pass with {self.num_batches:,} steps")
        first, last = self.edges[step], self.edges[step + 1]
        return first, last if self.fills_up else min(last, self.stop)

    def _span(self, low: int, high: int) -> Part:
        """Returns the rows at absolute positions [low, high); what lies beyond `stop` is the epoch's start again."""
        offsets = np.arange(low - self._epoch_start, high - self._epoch_start, dtype=np.int64)
        is_pad = offsets >= self.stop - self._epoch_start
        offsets[is_pad] %= self.num_positions
        return self._rows(offsets, is_pad)

    def _rows(self, offsets: npt.NDArray[np.int64], is_pad: npt.NDArray[np.bool_]) -> Part:
        """Returns the rows at positions counted from the start of this pass's epoch; negative = an epoch before."""
        epochs, positions = np.divmod(offsets, self.num_positions)
        epochs += self.epoch
        return Part(epochs, positions, is_pad)
