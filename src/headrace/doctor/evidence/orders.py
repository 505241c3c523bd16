"""Which samples come in which order, epoch after epoch, and how many of them against what the loader says."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence

__all__ = ["DrawnPass", "EpochCounts", "EpochPass", "LabelOrder", "Orders", "Weights"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPass:
    """One walk through a sampler or a stream: what an epoch would deliver."""

    num_batches: int
    num_samples: int
    num_different: int
    """Different samples; fewer than `num_samples`: some come several times."""
    order_hash: int
    """Equal for two passes with the same samples in the same order."""
    batches_hash: int
    """Equal for two passes whose batches hold the same samples, whatever the order of batches and inside them."""
    is_complete: bool = True
    """False: it was left before its end."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LabelOrder:
    """How well the classes are mixed in the first pass."""

    num_labels: int
    mean_run: float
    """Mean number of samples of one class in a row."""
    random_run: float
    """What a random order of the same labels would have."""
    labels_per_batch: float
    """Mean number of classes in a batch."""
    random_per_batch: float
    """What random batches of the same labels would have."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A sampler that draws by weights."""

    num_weights: int
    num_draws: int
    """Draws per epoch, as the sampler says."""
    replacement: bool | None
    """None: it does not say."""
    num_labels: int | None = None
    """Classes of the data set; None: not known."""
    never_drawn: tuple[str, ...] = ()
    """Classes that have samples, all of weight 0."""
    is_uniform: bool = False
    """True if all weights are equal."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Orders(Evidence):
    """The sampler of a loader (or its stream) walked for some epochs as the user's loop would; no batch is made of it.

    The global generators are seeded once before the first pass and go on from pass to pass, as in a real run.
    """

    sampler: str
    """Class of what decides the order: the batch sampler or sampler that is not torch's plain one, or the stream."""
    passes: tuple[DrawnPass, ...]
    """In the order of epochs."""
    sampler_at: str | None = None
    """`file:line` of that class, if it is the user's own."""
    draws: Literal["each-pass", "once", "never", "unknown"] = "unknown"
    """By its code: whether random numbers are drawn in each pass, once when it is made, or not at all."""
    groups_batches: bool = False
    """True if it is a batch sampler of the user's own, which decides what stands together in a batch."""
    is_stream: bool = False
    num_rows: int | None = None
    """`len(dataset)`; None: it has none."""
    batch_size: int | None = None
    """Samples in the largest batch; None: single samples."""
    is_sequential: bool = False
    """True if the first pass is 0, 1, 2, ... or goes up without a break in the order."""
    displacement: float | None = None
    """Mean distance between a sample's place in the first pass and its place in the data set (of a stream: in the
    second pass), as a share of the whole: 0 = the same order, 1/3 = random. None: samples repeat, or not known."""
    adjacency: float | None = None
    """Share of samples that come right after the one that stands before them in the data set (of a stream: in the
    second pass): 0 = mixed, 1 = the same order; near 1 with a large displacement: whole blocks change places."""
    batches_are_even: bool = True
    """True if nearly all batches have the same number of samples."""
    labels: LabelOrder | None = None
    """None: the data set does not say its labels cheaply, or the target is no class."""
    weights: Weights | None = None
    set_epoch_of: str | None = None
    """Class of the object of the loader that has `set_epoch`; None: none has."""
    epochs_told: bool = False
    """True if the source calls `set_epoch` with something that changes, so that it was called before each pass."""
    constant_epoch_at: str | None = None
    """`file:line` of a call of `set_epoch` with a fixed number."""
    order_follows_epoch: bool | None = None
    """True if `set_epoch` with another number changes the order; None: not tried."""
    epoch_loop_at: str | None = None
    """`file:line` of a loop over epochs in the source or in what imports it; None: none was found."""
    framework: str | None = None
    """A library of the source that tells samplers the epoch by itself; None: none."""
    role: Literal["train", "evaluation"] | None = None
    """By its name or because it shuffles, or because the file trains on its only loader; None: not known."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EpochPass:
    """One walk through the loader."""

    num_batches: int
    num_samples: int | None
    """None: the loader's batches do not say."""
    is_complete: bool
    """False: it was left because of the limits."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EpochCounts(Evidence):
    """What comes, pass after pass, against what `len` says."""

    source: str
    """Class of the data set, sampler or loader that yields."""
    source_at: str | None
    """`file:line` of it, if it is the user's own."""
    said_batches: int | None
    """`len(loader)`; None: it has none."""
    single: tuple[EpochPass, ...]
    """Passes one after another in one process."""
    with_workers: tuple[EpochPass, ...] = ()
    """A pass with the loader's own workers; empty: not tried."""
    num_workers: int = 0
    batch_size: int | None = None
    drop_last: bool = False
    is_stream: bool = False
    resets_at: str | None = None
    """`file:line` where the source calls `reset()`, so that a pass that ended may be meant to be wound back by hand."""
