"""The steps of a pass, several at a time: arithmetic on thousands of positions costs little more than on a few.

A step's part is the same as `Pass.part` gives; only the arrays of neighbouring steps lie behind each other in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.engine.order.passes import Part, Pass

__all__ = ["BLOCK_ROWS", "Block", "blocks"]

BLOCK_ROWS = 2**15
"""Rows of one block: what a block costs beside its rows (0.1 ms, from cold caches) is then 3 ns a row. To make the first
one, before the first batch, takes 0.2 ms; 1 ms without the library of `kernels.c`."""

BLOCK_STEPS = 256
"""Steps of one block, for small batches: among several ranks a step takes 20 microseconds to plan, so the first batch waits
for 5 ms at most."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some steps that follow each other."""

    first_step: int
    """Number of the first of them."""
    edges: list[int]
    """Where in the rows each step begins, and the number of rows."""
    rows: Part
    """This rank's rows of all these steps. Not to be written: the parts of the steps are views of it."""

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        """Yields each step and where its rows are."""
        for place, low in enumerate(self.edges[:-1]):
            yield self.first_step + place, slice(low, self.edges[place + 1])


def blocks(one_pass: Pass, block_rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """Yields all steps of a pass in blocks of at least one step, and about `block_rows` rows at most."""
    # The same for all full batches of one epoch, so made once: fresh pages cost more than the numbers on them.
    epochs = _read_only(np.empty(0, dtype=np.int64))
    no_pad = _read_only(np.empty(0, dtype=np.bool_))
    step = 0
    while step < one_pass.num_batches:
        num_rows = max(1, (one_pass.edges[step + 1] - one_pass.edges[step]) // one_pass.world_size)
        stop = min(one_pass.num_batches, step + min(max(1, block_rows // num_rows), BLOCK_STEPS))
        if _is_range(one_pass, step, stop):
            low, high = (one_pass.edges[edge] - one_pass.epoch * one_pass.num_positions for edge in (step, stop))
            if high - low > len(epochs):
                epochs = _read_only(np.full(high - low, one_pass.epoch, dtype=np.int64))
                no_pad = _read_only(np.zeros(high - low, dtype=np.bool_))
            edges = [edge - one_pass.edges[step] for edge in one_pass.edges[step : stop + 1]]
            positions = _read_only(np.arange(low, high, dtype=np.int64))
            yield Block(step, edges, Part(epochs[: high - low], positions, no_pad[: high - low]))
        else:
            parts = [one_pass.part(each) for each in range(step, stop)]
            edges = [0, *np.cumsum([len(part) for part in parts]).tolist()]
            columns = zip(*((part.epochs, part.positions, part.is_pad) for part in parts), strict=True)
            yield Block(step, edges, Part(*(_read_only(np.concatenate(column)) for column in columns)))
        step = stop


def _is_range(one_pass: Pass, start: int, stop: int) -> bool:
    """True if the rows of these steps are positions p, p + 1, ...: all of this epoch, on one rank, and no repeats."""
    epoch_start = one_pass.epoch * one_pass.num_positions
    return one_pass.world_size == 1 and one_pass.edges[start] >= epoch_start and one_pass.edges[stop] <= one_pass.stop


def _read_only(column: Any) -> Any:
    column.flags.writeable = False
    return column
