"""Where batches begin and end, and what happens at the end of an epoch. Arithmetic only.

Each batch takes the next G positions of the order. The end of an epoch leaves fewer than G of them, the tail:

    drop      they are not handed over, and are listed as dropped
    partial   they form a short batch
    pad       they form a batch that flagged repeats, from the start of the same order, fill up to G
    carry     they begin the first batch of the next pass, which crosses the end of the epoch

A plan keeps no state: `begin` makes a `Pass` (what one `for` loop over a loader covers) from any point that any plan
has reached. Ranks and batch size are the business of the plan that goes on, never of the point.
"""

from __future__ import annotations

import bisect
import dataclasses
import enum
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from headrace.engine.order.passes import Part, Pass
from headrace.errors import ConfigurationError, SourceError, StateMismatch, Where, nearest

__all__ = ["BatchPlan", "ListedBatches", "Part", "Pass", "Tail"]


class Tail(enum.StrEnum):
    """What happens to the positions at the end of an epoch that fill no batch."""

    DROP = "drop"
    PARTIAL = "partial"
    PAD = "pad"
    CARRY = "carry"


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """Batches of one size over epochs of one length, and this rank's place among the others.

    Raises:
        ConfigurationError: A number is out of range, or two cannot work together; says what would.

    >>> one_pass = BatchPlan(num_positions=10, batch_size=4).begin(epoch=0, consumed=0)
    >>> [one_pass.part(step).positions.tolist() for step in range(one_pass.num_batches)]
    [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    num_positions: int
    """N', positions in one epoch; at least 1."""
    batch_size: int
    """G, samples of one batch over all ranks; at least world_size."""
    rank: int = 0
    """This rank, from 0."""
    world_size: int = 1
    """R, number of ranks that step together."""
    tail: Tail = Tail.PARTIAL
    """What happens to the end of an epoch; its name as text will do. The default is torch's `drop_last=False`."""

    def __post_init__(self) -> None:
        for name in ("num_positions", "batch_size", "rank", "world_size"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        object.__setattr__(self, "tail", _tail(self.tail))
        if self.num_positions < 1:
            raise ConfigurationError(f"an epoch of {self.num_positions:,} positions has no batch: it takes at least 1")
        if self.batch_size < 1:
            raise ConfigurationError(f"batch_size is {self.batch_size:,}: it must be 1 or more", do="batch_size=1")
        _check_ranks(self.rank, self.world_size)
        if self.batch_size < self.world_size:
            raise ConfigurationError(
                f"batch_size {self.batch_size:,} is less than world_size {self.world_size:,}",
                why="batch_size counts the samples of all ranks together, and every rank needs one in every step",
                do=f"batch_size={self.world_size}    # the smallest that works, one sample for each rank",
            )

    @property
    def num_batches_full(self) -> int:
        """Batches of a pass that begins at the start of an epoch: the length of a loader.

        Under `carry` a pass may have one more, when what the pass before carried over completes a batch.
        """
        if self.tail in {Tail.PARTIAL, Tail.PAD}:
            return -(-self.num_positions // self.batch_size)
        return self.num_positions // self.batch_size

    def begin(self, epoch: int, consumed: int) -> Pass:
        """Returns the pass that goes on from that point, whichever plan reached it.

        From a point where this plan has nothing more to hand over in that epoch, the pass is the next epoch's. Only
        under `drop` with epochs shorter than a batch has a pass no batches. Under `carry` a batch belongs to the epoch
        in which it ends; if batches span several epochs, those in which none ends have no pass.

        Args:
            epoch: Epoch of the point, from 0.
            consumed: Positions of that epoch already handed over, from 0 to N'.

        Raises:
            StateMismatch: There is no such point.
        """
        num, size = self.num_positions, self.batch_size
        _check_point(epoch, consumed, num)
        start, passed_over = epoch * num + consumed, 0
        fills_none = self.tail is Tail.DROP and consumed > 0 and num - consumed < size
        if self.tail is Tail.CARRY:
            epoch = (start + size - 1) // num
        elif consumed == num or fills_none:
            epoch, passed_over = epoch + 1, num - consumed
            start = epoch * num
        end = (epoch + 1) * num
        num_batches, rest = divmod(end - start, size)
        if rest and self.tail in {Tail.PARTIAL, Tail.PAD}:
            num_batches += 1
        edges = range(start, start + num_batches * size + 1, size)
        return Pass(
            epoch=epoch,
            num_positions=num,
            edges=edges,
            stop=edges[-1] if self.tail is Tail.CARRY else end,
            fills_up=self.tail is Tail.PAD,
            rank=self.rank,
            world_size=self.world_size,
            num_passed_over=passed_over,
        )


@dataclasses.dataclass(frozen=True)
class ListedBatches:
    """Batches whose sizes somebody else lists epoch by epoch: a torch batch sampler. Its tail is its own affair.

    Raises:
        ConfigurationError: A number is out of range.
    """

    sizes_of_epoch: Callable[[int], Sequence[int]]
    """Called with an epoch; returns the size of each of its batches over all ranks. Same on every rank."""
    rank: int = 0
    """This rank, from 0."""
    world_size: int = 1
    """R, number of ranks that step together."""

    def __post_init__(self) -> None:
        for name in ("rank", "world_size"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        _check_ranks(self.rank, self.world_size)

    def begin(self, epoch: int, consumed: int) -> Pass:
        """Returns the pass that goes on from that point; from the end of an epoch, the next epoch's.

        Args:
            epoch: Epoch of the point, from 0.
            consumed: Positions of that epoch already handed over: where one of its batches begins, or its end.

        Raises:
            StateMismatch: No batch begins there.
            SourceError: The epoch has no batches, or an empty one.
        """
        edges = self._edges(epoch)
        _check_point(epoch, consumed, edges[-1])
        if consumed == edges[-1]:
            epoch, consumed = epoch + 1, 0
            edges = self._edges(epoch)
        place = bisect.bisect_left(edges, consumed)
        if edges[place] != consumed:
            raise StateMismatch(
                f"the state stands at position {consumed:,} of epoch {epoch}, inside a batch: "
                f"here a batch begins at {edges[place - 1]:,} and the next at {edges[place]:,}",
                why="the batch sampler formed other batches when the state was saved",
                do="give the batch sampler the settings of the run that saved the state",
            )
        base = epoch * edges[-1]
        return Pass(
            epoch=epoch,
            num_positions=edges[-1],
            edges=tuple(base + edge for edge in edges[place:]),
            stop=base + edges[-1],
            rank=self.rank,
            world_size=self.world_size,
        )

    def _edges(self, epoch: int) -> list[int]:
        """Positions within the epoch where its batches begin, and its end."""
        sizes = list(self.sizes_of_epoch(epoch))
        where = Where(stage="batch sampler", epoch=epoch)
        if not sizes:
            raise SourceError(f"the batch sampler listed no batches for epoch {epoch}", where=where)
        if min(sizes) < 1:
            step = next(step for step, size in enumerate(sizes) if size < 1)
            raise SourceError(f"the batch sampler listed an empty batch: batch {step:,} of {len(sizes):,}", where=where)
        return [0, *itertools.accumulate(sizes)]


def _whole(name: str, value: Any) -> int:
    """Returns a whole number of any kind as Python's own, whose products cannot overflow."""
    try:
        return operator.index(value)
    except TypeError:
        raise ConfigurationError(f"{name} is {value!r}: it must be a whole number") from None


def _check_ranks(rank: int, world_size: int) -> None:
    if world_size < 1:
        raise ConfigurationError(f"world_size is {world_size:,}: it must be 1 or more", do="world_size=1")
    if not 0 <= rank < world_size:
        raise ConfigurationError(
            f"rank is {rank:,}: with world_size {world_size:,} it must be from 0 to {world_size - 1:,}"
        )


def _check_point(epoch: int, consumed: int, num_positions: int) -> None:
    if epoch < 0:
        raise StateMismatch(f"the state stands in epoch {epoch:,}: epochs count from 0")
    if not 0 <= consumed <= num_positions:
        raise StateMismatch(
            f"the state says that {consumed:,} samples of epoch {epoch:,} were handed over; an epoch here has "
            f"{num_positions:,}",
            why="probably the state was saved with another data set or sampler",
        )


def _tail(tail: str) -> Tail:
    try:
        return Tail(tail)
    except ValueError:
        known = [known.value for known in Tail]
        raise ConfigurationError(
            f"unknown tail {tail!r}{nearest(str(tail), known)}",
            do=f"tail= one of {', '.join(map(repr, known))}",
        ) from None
