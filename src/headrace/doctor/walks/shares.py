"""How samples are shared out among workers, and what is lost on the way. Pure: counts in, evidence out."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.workers import WorkerShares
from headrace.doctor.walks.field_digests import whole_digest
from headrace.doctor.walks.loader_walk import Pass

__all__ = ["deal_out", "stream_shares"]


def deal_out(sizes: Sequence[int], facts: LoaderFacts, *, is_complete: bool) -> WorkerShares:
    """Returns the shares of the loader's own workers: batch k goes to worker k modulo their number.

    Args:
        sizes: Samples in each batch, in the sampler's order.
        facts: The loader.
        is_complete: True if these are all batches of an epoch.
    """
    num_workers = max(facts.num_workers, 1)
    return WorkerShares(
        num_workers=num_workers,
        num_own_workers=facts.num_workers,
        is_iterable=False,
        per_worker=tuple(sum(sizes[worker::num_workers]) for worker in range(num_workers)),
        is_complete=is_complete,
        num_batches=len(sizes),
        batch_size=facts.batch_size,
        drop_last=facts.drop_last,
        num_single=None,
        num_missing=None,
    )


def stream_shares(
    walked: Pass, walks: Sequence[Sequence[str | None] | None], facts: LoaderFacts, *, num_workers: int
) -> WorkerShares:
    """Returns what each worker's stream yielded, against two walks of one process.

    Args:
        walked: One epoch with workers.
        walks: Digests of all samples in two walks of one process; None for one that did not end.
        facts: The loader.
        num_workers: Workers of that epoch.
    """
    yielded = [
        [whole_digest(event["fields"]) for event in events if event["at"] == "end"] for events in walked.journals
    ]
    exhausted = [any(event["at"] == "exhausted" for event in events) for events in walked.journals]
    is_complete = walked.outcome == "done" and all(exhausted)
    full = [walk for walk in walks if walk is not None]
    num_single = len(full[0]) if len(full) == 2 and len(full[0]) == len(full[1]) else None
    size = facts.batch_size or 1
    drops = facts.drop_last and is_complete
    return WorkerShares(
        num_workers=num_workers,
        num_own_workers=facts.num_workers,
        is_iterable=True,
        per_worker=tuple(map(len, yielded)),
        # A worker that is through has no more to come, however far the others are.
        is_complete=is_complete,
        num_batches=None,
        batch_size=facts.batch_size,
        drop_last=facts.drop_last,
        num_single=num_single,
        num_missing=_missing(full, yielded) if is_complete and num_single is not None else None,
        num_dropped=sum(len(one) % size for one in yielded) if drops else 0,
        num_dropped_single=(num_single or 0) % size if drops else 0,
    )


def _missing(walks: Sequence[Sequence[str | None]], yielded: Iterable[Sequence[str | None]]) -> int | None:
    """Samples of one process that no worker yields; None if contents change from walk to walk, or with the worker."""
    once, again = map(collections.Counter, walks)
    got: collections.Counter[str | None] = sum(map(collections.Counter, yielded), collections.Counter())
    if once != again or None in once or got - once:
        return None
    return (once - got).total()
