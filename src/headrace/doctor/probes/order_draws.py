"""Walks samplers without reading a sample, and measures an order: hashes, displacement, how classes are mixed."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from headrace.doctor.evidence.orders import DrawnPass, LabelOrder
from headrace.doctor.lab.bench import Bench

__all__ = ["Drawn", "adjacency", "displacement", "label_order", "walk"]

MAX_DRAWN = 400_000
"""Samples at most in one walk: less than a second for torch's own samplers; of a longer epoch its beginning is compared."""
CHUNK = 1024
"""Draws between two marks for the deadline: a sampler that hangs is named, one that has much to draw is not."""


@dataclasses.dataclass(slots=True)
class Drawn:
    """What one walk drew."""

    ids: list[Hashable]
    sizes: list[int]
    """Samples in each batch; empty for samples drawn one by one."""
    is_complete: bool

    def told(self) -> DrawnPass:
        """The pass as evidence."""
        return DrawnPass(
            num_batches=len(self.sizes),
            num_samples=len(self.ids),
            num_different=len(set(self.ids)),
            order_hash=_hash(self.ids),
            batches_hash=_hash(sorted(_hash(sorted(map(str, batch))) for batch in self.batches())),
            is_complete=self.is_complete,
        )

    def batches(self) -> Iterator[Sequence[Hashable]]:
        """The batches; without any, single samples."""
        start = 0
        for size in self.sizes or [1] * len(self.ids):
            yield self.ids[start : start + size]
            start += size

    @property
    def is_even(self) -> bool:
        """True if nearly all batches have the same number of samples."""
        return not self.sizes or self.sizes.count(max(self.sizes)) >= 0.8 * len(self.sizes) - 1

    def rows(self) -> npt.NDArray[np.int64] | None:
        """The drawn numbers; None if they are none."""
        if not all(isinstance(one, (int, np.integer)) for one in self.ids[:1000]):
            return None
        try:
            return np.asarray(self.ids, np.int64)
        except (TypeError, ValueError, OverflowError):
            return None


def walk(sampler: Iterable[Any], bench: Bench, limit_s: float, *, stage: str = "sampler") -> Drawn:
    """Walks a sampler or batch sampler from `iter` to its end, or to the limits."""
    drawn = Drawn(ids=[], sizes=[], is_complete=False)
    end = time.monotonic() + limit_s
    with bench.holding(None, None, stage=stage):
        iterator = iter(sampler)
    while len(drawn.ids) < MAX_DRAWN and time.monotonic() < end:
        with bench.holding(None, None, stage=stage):
            for _ in range(CHUNK):
                try:
                    one = next(iterator)
                except StopIteration:
                    drawn.is_complete = True
                    return drawn
                if isinstance(one, (list, tuple)):
                    drawn.ids += map(_id, one)
                    drawn.sizes.append(len(one))
                elif hasattr(one, "tolist") and getattr(one, "ndim", 0) == 1:
                    drawn.ids += one.tolist()
                    drawn.sizes.append(len(one))
                else:
                    drawn.ids.append(_id(one))
    return drawn


def _id(drawn: Any) -> Hashable:
    """What was drawn, as something to compare: a number, else its text."""
    if isinstance(drawn, int):
        return drawn
    try:
        return int(drawn.__index__())
    except (AttributeError, TypeError, ValueError):
        return drawn if isinstance(drawn, str) else str(drawn)


def _hash(ids: Sequence[Any]) -> int:
    """A hash of a sequence that is the same in every process."""
    content = xxhash.xxh3_64()
    if ids and all(isinstance(one, int) and -(2**63) <= one < 2**63 for one in ids):
        content.update(np.asarray(ids, np.int64).tobytes())
    else:
        for one in ids:
            content.update(f"{one}\0".encode())
    return int(content.intdigest() >> 1)  # fits a signed integer of JSON readers


def displacement(order: Sequence[Hashable], reference: Sequence[Hashable] | None = None) -> float | None:
    """Returns the mean distance between the places of a sample in two orders, as a share of their length.

    0 = equal, 1/3 = random, 1/2 = reversed. None if the two do not hold the same different samples, or hardly any.

    Args:
        order: Samples in their order.
        reference: The same samples in another order. Default: sorted.
    """
    size = len(order)
    if size < 2 or len(set(order)) != size:
        return None
    if reference is None:
        numbers = np.asarray(order)
        if numbers.dtype.kind not in "iu":
            return None
        places = np.empty(size, np.int64)
        places[np.argsort(numbers)] = np.arange(size)
    else:
        where = {one: place for place, one in enumerate(reference)}
        if len(where) != size or any(one not in where for one in order):
            return None
        places = np.fromiter((where[one] for one in order), np.int64, size)
    return float(np.abs(places - np.arange(size)).mean() / size)


def adjacency(order: Sequence[Hashable], reference: Sequence[Hashable] | None = None) -> float | None:
    """Returns the share of samples that follow the sample that they follow in the reference; None as for displacement.

    Args:
        order: Samples in their order.
        reference: The same samples in another order. Default: sorted.
    """
    if len(order) < 2 or len(set(order)) != len(order):
        return None
    try:
        before = sorted(order) if reference is None else reference  # type: ignore[type-var]
    except TypeError:
        return None
    follows = dict(itertools.pairwise(before))
    return sum(follows.get(one) == other for one, other in itertools.pairwise(order)) / (len(order) - 1)


def label_order(labels: npt.NDArray[np.int64], sizes: Sequence[int]) -> LabelOrder | None:
    """Measures how well classes are mixed.

    Args:
        labels: [N] class of each sample in its order.
        sizes: Samples in each batch.

    In a random order of N labels with counts c the expected number of runs is 1 + N - sum(c^2) / N; a random batch of
    k holds about sum(1 - (1 - c / N)^k) classes.
    """
    size = len(labels)
    counts = np.unique(labels, return_counts=True)[1] if size else np.zeros(0)
    if size < 2 or len(counts) < 2:
        return None
    runs = 1 + int((labels[1:] != labels[:-1]).sum())
    random_runs = 1 + size - float((counts.astype(float) ** 2).sum()) / size
    edges = np.cumsum([0, *sizes]) if sizes else np.arange(0, size + 1)
    mixed = [len(np.unique(labels[start:end])) for start, end in itertools.pairwise(edges) if end > start]
    expected = [float((1 - (1 - counts / size) ** (end - start)).sum()) for start, end in itertools.pairwise(edges)]
    return LabelOrder(
        num_labels=len(counts),
        mean_run=size / runs,
        random_run=size / random_runs,
        labels_per_batch=float(np.mean(mixed)),
        random_per_batch=float(np.mean(expected)),
    )
