"""What a setting costs those who live with it: looked at in this order, and the first difference decides."""

from __future__ import annotations

from typing import NamedTuple

from headrace.doctor.timing.setting import Setting
from headrace.doctor.tuning.facts import LoaderNow

__all__ = ["Cost", "cost_of"]

DEFAULT_PREFETCH = 2
NOTICEABLE = 64 * 2**20
"""Bytes below which nobody trades a line of code for memory."""


class Cost(NamedTuple):
    """Compared as tuples are: less is simpler."""

    meaning: int
    """1: another piece of code makes the batch (the data set's own reading of several rows)."""
    dependency: int
    """1: the training script imports something that it did not import before."""
    num_processes: int
    """Worker processes."""
    ahead_bytes: int
    """Memory of the batches that are prepared ahead, in whole steps of 64 MiB: batches in flight x bytes of one. A forecast
    and no measurement, so that noise never decides which of two settings is the simpler one."""
    deeper: int
    """Batches that each worker prepares ahead beyond torch's two: fewer save memory, which is counted, and nothing else."""
    num_flags: int
    """Arguments that differ from their defaults."""


def cost_of(facts: LoaderNow, change: Setting, *, batch_bytes: int) -> Cost:
    """Returns the cost of a whole setting.

    Args:
        facts: The loader as it is.
        change: What is changed of it.
        batch_bytes: Size of one batch.
    """
    whole = facts.under(change)
    num_workers = whole.num_workers or 0
    prefetch = (whole.prefetch_factor or DEFAULT_PREFETCH) if num_workers else 0
    flags = (
        bool(whole.persistent_workers),
        bool(whole.pin_memory),
        whole.start_method not in {None, facts.default_start_method},
        prefetch not in {0, DEFAULT_PREFETCH},
        bool(whole.reads_batches),
        whole.runner is not None,
        num_workers != 0,
    )
    return Cost(
        meaning=int(bool(whole.reads_batches)),
        dependency=int(whole.loader == "headrace" and facts.library != "headrace"),
        num_processes=0 if whole.runner == "threads" else num_workers,
        ahead_bytes=num_workers * prefetch * batch_bytes // NOTICEABLE * NOTICEABLE,
        deeper=max(prefetch - DEFAULT_PREFETCH, 0),
        num_flags=sum(flags),
    )
