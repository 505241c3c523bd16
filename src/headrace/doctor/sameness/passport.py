"""What one loader delivered: ids, digests and forms, by epoch and position. No contents."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

import xxhash

from headrace.doctor.sameness.multiset import chain_hash
from headrace.errors import SampleId

__all__ = [
    "Batch",
    "Epoch",
    "Fields",
    "Introduction",
    "Passport",
    "Sample",
    "SharedDraws",
    "Stopped",
    "Traits",
    "order_hash",
]

Fields = Mapping[str, str | None]
"""Field -> `float32[3, 8, 8]:digest`; None: it has no bytes of its own."""
SHOWN = 20
"""Hexadecimal digits of an id that is a content: 80 bits; two of a million samples meet with a chance of one in 10^12."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a batch."""

    row: SampleId | None
    """Index in the data set; None: a stream."""
    name: SampleId | None
    """The data set's own name for it, or the key inside it; None: neither."""
    fields: Fields | None
    """None: not among the chosen ones."""

    def content(self, fields: Iterable[str]) -> str:
        """A digest of some of its fields, which stands for an id where there is none."""
        held = self.fields or {}
        text = repr([(field, held.get(field)) for field in sorted(fields)])
        return f"content {xxhash.xxh3_128_hexdigest(text.encode())[:SHOWN]}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch as it was handed over. The record that a walk yields."""

    epoch: int
    samples: tuple[Sample, ...]
    refused: tuple[SampleId, ...] = ()
    """Samples that were asked for and are not in it."""
    form: Fields = dataclasses.field(default_factory=dict)
    """Field of the batch -> dtype, shape, stride class, device; empty: not asked for."""
    digests: Fields = dataclasses.field(default_factory=dict)
    """Field of the batch -> digest of its bytes."""
    is_at_once: bool = False
    """True: the data set was asked for all its rows at once, and made one batch of them."""
    undivided: str = ""
    """Why it could not be divided into samples, and counts as one. Empty: it was divided."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A walk that did not come to the end of an epoch."""

    epoch: int
    reason: str
    is_error: bool
    """True: the loader raised an exception, as it would in training; False: the walk was cut off."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharedDraws:
    """Two workers that draw the same random numbers, or one that draws them again in the next epoch."""

    generator: str
    samples: tuple[SampleId, SampleId]
    """First samples, one of each, that were prepared from the same state."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What a loader says of itself before it is walked."""

    kind: str
    num_workers: int
    num_rows: int | None = None
    """Rows of the data set, where it has row numbers."""
    has_rows: bool
    has_names: bool
    """True if the data set has names of its own for its rows."""
    draws_by_key: bool
    """True if random numbers depend on seed, epoch and sample alone (headrace's loader)."""
    seed: int | None
    """Its own seed; None: it has none."""
    can_freeze: bool = False
    """True if generators can be set back before each sample."""
    pins: bool = False
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Which fields are fixed and which are random, from reading samples several times."""

    rates: Mapping[str, float]
    """Field -> share of samples that differ under different seeds; 0 = fixed."""
    unseeded: frozenset[str] = frozenset()
    """Fields that differ under equal seeds, too."""
    targets: tuple[str, ...] = ()
    num_samples: int = 0

    @property
    def fixed(self) -> frozenset[str]:
        """Fields that were the same in every read."""
        return frozenset(field for field, rate in self.rates.items() if not rate) - self.unseeded

    @property
    def random(self) -> frozenset[str]:
        """The others."""
        return frozenset(self.rates) - self.fixed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Epoch:
    """One pass."""

    batches: tuple[Batch, ...] = ()
    is_whole: bool = True
    """False: it was left, or broke off, before its end."""

    @functools.cached_property
    def samples(self) -> tuple[Sample, ...]:
        """All samples in the order of delivery."""
        return tuple(itertools.chain.from_iterable(batch.samples for batch in self.batches))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Passport:
    """Everything that is known of one loader's delivery."""

    introduction: Introduction
    epochs: tuple[Epoch, ...]
    frozen: Epoch | None = None
    """One pass with every generator set back before each sample; None: not walked."""
    traits: Traits = dataclasses.field(default_factory=lambda: Traits(rates={}))
    shared_draws: tuple[SharedDraws, ...] = ()
    """Over workers."""
    repeated_draws: tuple[SharedDraws, ...] = ()
    """Over epochs, for different samples: the order changed, and the random numbers came again."""
    follows_draws: bool = False
    """True if the draws of several workers were followed."""
    stopped: Stopped | None = None

    @property
    def is_at_once(self) -> bool:
        """True if the data set makes whole batches."""
        return any(batch.is_at_once for epoch in self.epochs for batch in epoch.batches)

    @property
    def undivided(self) -> str:
        """Why a batch could not be divided into samples; empty: all were."""
        return next((batch.undivided for epoch in self.epochs for batch in epoch.batches if batch.undivided), "")

    @property
    def refused(self) -> tuple[SampleId, ...]:
        """Samples that were left out or replaced, in order."""
        return tuple(one for epoch in self.epochs for batch in epoch.batches for one in batch.refused)


def order_hash(epoch: Epoch, ids: Sequence[SampleId]) -> int:
    """Returns the order and batch boundaries of one epoch under given ids."""
    rest = iter(ids)
    return chain_hash(list(itertools.islice(rest, len(batch.samples))) for batch in epoch.batches)
