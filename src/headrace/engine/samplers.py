"""Torch's samplers behind the Order protocol: whatever a sampler yields, it can be listed again for any epoch.

A sampler draws from a generator of its own or from torch's global one. Both are keyed by (seed, epoch) while it is
listed and put back afterwards, so the list can be made again on resume; a sampler that keeps other state is caught by
the digest of the order, which is part of the saved state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

import numpy as np

from headrace.engine.order.orders import ListedOrder, SequentialOrder, ShuffledOrder
from headrace.engine.transform.global_generators import keyed
from headrace.errors import ConfigurationError, SourceError
from headrace.keys import derive_key
from headrace.protocols import Order

__all__ = ["BatchListing", "EpochSampler", "SamplerListing", "order_for"]


class EpochSampler:
    """What `loader.sampler` shows when the order is headrace's own: the indices of one epoch, in order."""

    def __init__(self, order: Order, seed: int, epoch: int) -> None:
        self._order, self._seed, self._epoch = order, seed, epoch

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        block = 1 << 14
        for start in range(0, len(self), block):
            positions = np.arange(start, min(start + block, len(self)), dtype=np.int64)
            yield from self._order.indices(self._seed, self._epoch, positions).tolist()


class SamplerListing:
    """Lists a sampler's epoch under keyed generators.

    `set_epoch`, where the sampler has it (DistributedSampler), is called with the loader's epoch, unless the user has
    set another epoch since the last listing: then the user's choice stands.
    """

    def __init__(self, sampler: Iterable[Any]) -> None:
        self.sampler = sampler
        self._nested = _nested(sampler)
        self._epochs_seen = self._epochs()

    def __call__(self, seed: int, epoch: int) -> list[Any]:
        """Returns everything that the sampler yields in that epoch."""
        for part, seen in zip(self._nested, self._epochs_seen, strict=True):
            set_epoch = getattr(part, "set_epoch", None)
            if callable(set_epoch) and getattr(part, "epoch", None) == seen:
                set_epoch(epoch)
        with self._keyed_generators(seed, epoch):
            listed = list(self.sampler)
        self._epochs_seen = self._epochs()
        return listed

    def _epochs(self) -> list[Any]:
        return [getattr(part, "epoch", None) for part in self._nested]

    @contextlib.contextmanager
    def _keyed_generators(self, seed: int, epoch: int) -> Iterator[None]:
        """Keys the global generators and every torch generator that the sampler (or one inside it) holds."""
        import torch

        held: list[tuple[torch.Generator, torch.Tensor]] = []
        for part in self._nested:
            generator = getattr(part, "generator", None)
            if isinstance(generator, torch.Generator):
                held.append((generator, generator.get_state()))
                # Its own first seed stays part of the key: two samplers seeded apart stay apart.
                generator.manual_seed(derive_key("sampler", seed, epoch, generator.initial_seed()) % 2**63)
        try:
            with keyed(derive_key("sampler", seed, epoch)):
                yield
        finally:
            for generator, state in held:
                generator.set_state(state)


def _nested(sampler: Any) -> list[Any]:
    """A sampler and those inside it: a batch sampler holds a sampler, which may hold another."""
    nested = [sampler]
    while (inner := getattr(nested[-1], "sampler", None)) is not None and len(nested) < 8:
        nested.append(inner)
    return nested


class BatchListing:
    """Lists a batch sampler's epoch: the indices in order, and the sizes of the batches."""

    def __init__(self, batch_sampler: Iterable[Sequence[int]]) -> None:
        self._listing = SamplerListing(batch_sampler)
        self._sizes: dict[tuple[int, int], list[int]] = {}

    def __call__(self, seed: int, epoch: int) -> list[int]:
        """Returns the indices of all batches of that epoch, in order."""
        batches = [list(batch) for batch in self._listing(seed, epoch)]
        empty = next((place for place, batch in enumerate(batches) if not batch), None)
        if empty is not None:
            raise SourceError(f"the batch sampler yields an empty batch (batch {empty} of epoch {epoch})")
        if len(self._sizes) > 1:  # the current epoch and the one before are enough
            self._sizes.pop(next(iter(self._sizes)))
        self._sizes[seed, epoch] = [len(batch) for batch in batches]
        return [index for batch in batches for index in batch]

    def sizes(self, seed: int, epoch: int) -> list[int]:
        """Returns the number of indices in each batch of that epoch."""
        if (seed, epoch) not in self._sizes:
            self(seed, epoch)
        return self._sizes[seed, epoch]


def order_for(sampler: Any, *, shuffle: bool, num_samples: int, seed: int) -> Order:
    """Returns the order that torch's `sampler` and `shuffle` arguments ask for."""
    if sampler is None:
        return ShuffledOrder(num_samples) if shuffle else SequentialOrder(num_samples)
    if not isinstance(sampler, Iterable):
        raise ConfigurationError(f"sampler={sampler!r} is not iterable: a sampler yields row numbers")
    listing = SamplerListing(sampler)
    num_positions = len(sampler) if isinstance(sampler, Sized) else len(listing(seed, 0))
    if num_positions == 0:
        raise ConfigurationError(f"the sampler {type(sampler).__name__} yields no index", do="look at its num_samples")
    return ListedOrder(f"sampler:{type(sampler).__name__}", listing, num_positions, num_samples=num_samples)
