"""What each rank of a distributed run would get: found by pretending to be each rank in turn, or in processes of one group."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence

__all__ = ["Padding", "RankFailure", "RankFailures", "RankSeeds", "RankShare", "Ranks"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RankShare:
    """One epoch of one rank."""

    num_batches: int
    num_samples: int
    num_different: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """What torch's distributed sampler does to a data set that some number of ranks does not divide."""

    world_size: int
    num_repeated: int
    num_lost: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ranks(Evidence):
    """The loader as each rank would have it."""

    world_size: int
    how: Literal["environment", "attributes", "processes"]
    """environment: TARGET was made again with RANK and WORLD_SIZE set and torch.distributed answering accordingly;
    attributes: TARGET fixes both, so a copy of its sampler was given each rank; processes: each rank was a process of its
    own, in one gloo group."""
    sampler: str
    """Class of what deals samples out; else of the sampler or stream."""
    deals_out: bool
    """True if the loader has something that deals samples out to ranks, or if it is not the same on all ranks."""
    shares: tuple[RankShare, ...]
    """By rank."""
    overlap: tuple[tuple[int, ...], ...]
    """Samples that ranks i and j both get; on the diagonal those of one rank."""
    num_union: int
    """Different samples of all ranks together."""
    is_complete: bool
    """False: streams were compared at their beginnings only."""
    sampler_at: str | None = None
    num_rows: int | None = None
    """`len(dataset)`; None: it has none."""
    batch_size: int | None = None
    """Samples in the largest batch of a rank."""
    by: Literal["row", "content"] = "row"
    drop_last: bool = False
    shuffles: bool | None = None
    is_stream: bool = False
    paddings: tuple[Padding, ...] = ()
    """For torch's distributed sampler: what other numbers of ranks would repeat or lose."""
    parallel_at: str | None = None
    """`file:line` where the source sets up several ranks (process group, DistributedDataParallel); None: nowhere."""
    joins_at: str | None = None
    """`file:line` where the source provides for uneven inputs (`Join`, `no_sync_on_uneven` and the like)."""
    counts_once_at: str | None = None
    """`file:line` where the source leaves repeats out of its scores (`gather_for_metrics`, a cut to the length)."""
    framework: str | None = None
    """A library of the source that deals samples out by itself, later; None: none."""
    replaced: str | None = None
    """Class of a sampler that an earlier loader over the same data set had and that this one lacks."""
    role: Literal["train", "evaluation"] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RankSeeds(Evidence):
    """The random state in which rank 0 and rank 1 prepare samples: of worker 0, or of the process without workers."""

    num_workers: int
    seeds: tuple[int, int]
    """The seed of worker 0 (or of the process) on ranks 0 and 1."""
    num_read: int
    """Rows that both ranks prepared in that state."""
    num_random: int
    """Of these, rows that come out differently from another seed: their preparation is random."""
    num_equal: int
    """Of the random ones, rows that come out equal on both ranks."""
    seeded_at: str | None = None
    """`file:line` where the source seeds, without the rank; None: in code that was not read."""
    is_executed: bool = True
    """False: the seeding was read in the source and repeated; making the loader does not run it."""
    init: str | None = None
    """Name of the loader's worker_init_fn."""
    framework: str | None = None
    """A library of the source that seeds workers by the rank itself; None: none."""
    role: Literal["train", "evaluation"] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RankFailure:
    """One rank that did not come as far as its loader's last batch."""

    rank: int
    error: str
    """Class and text of what was raised; for one that waits, of what its wait ended with."""
    at: str | None
    """`file:line in function` of the user's code; None: not known."""
    is_waiting: bool = False
    """True: it was in a collective, and the others were not, or were gone."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RankFailures(Evidence):
    """Ranks that ran as processes of one group."""

    world_size: int
    failures: tuple[RankFailure, ...]
    """None: all ranks made their loaders and drew an epoch."""
