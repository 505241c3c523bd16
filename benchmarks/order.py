"""What the order of an epoch costs: the keyed permutation against numpy's `Generator.permutation`.

Two questions. *Whole epoch*: nanoseconds per index when all N are asked for, block by block; numpy shuffles a list of
8 N bytes, ours keeps none from 65,537 on. *Seek*: milliseconds until a run that resumes in the middle of an epoch has the
256 indices of its next batch, on a fresh object; numpy must shuffle the whole list first.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
from benchmarks.measure import Comparison

from headrace.engine.order.permutation import Permutation

BLOCK = 1 << 16
BATCH = 256


def comparisons(*, is_quick: bool) -> Iterator[Comparison]:
    """Yields what is to be measured."""
    for num_positions in (10_000, 1_000_000) if is_quick else (10_000, 1_000_000, 10_000_000):
        yield Comparison(
            name=f"order of {num_positions:,} samples, whole epoch",
            unit="ns per index",
            more_is_better=False,
            sides={
                "numpy Generator.permutation": _timed(
                    lambda key, n=num_positions: _shuffle(n, key), 1e9 / num_positions
                ),
                "headrace Permutation": _timed(lambda key, n=num_positions: _walk(n, key), 1e9 / num_positions),
            },
        )
        yield Comparison(
            name=f"order of {num_positions:,} samples, seek to the middle",
            unit="ms",
            more_is_better=False,
            sides={
                "numpy Generator.permutation": _timed(
                    lambda key, n=num_positions: _shuffle(n, key)[n // 2 :][:BATCH], 1e3
                ),
                "headrace Permutation": _timed(lambda key, n=num_positions: _seek(n, key), 1e3),
            },
        )


def _timed(work: Callable[[int], object], scale: float) -> Callable[[], float]:
    """Returns a measure of one call, each time with another key, so that nothing can be remembered."""
    keys = itertools.count(1)

    def measure() -> float:
        key = next(keys)
        begin = time.perf_counter()
        work(key)
        return (time.perf_counter() - begin) * scale

    return measure


def _shuffle(num_positions: int, key: int) -> np.ndarray:
    return np.random.default_rng(key).permutation(num_positions)


def _walk(num_positions: int, key: int) -> None:
    order = Permutation(num_positions, key)
    for start in range(0, num_positions, BLOCK):
        order.forward(np.arange(start, min(start + BLOCK, num_positions)))


def _seek(num_positions: int, key: int) -> np.ndarray:
    start = num_positions // 2
    return Permutation(num_positions, key).forward(np.arange(start, start + BATCH))
