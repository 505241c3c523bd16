"""Made-up evidence of orders, epochs and ranks, in few words."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.orders import DrawnPass, EpochCounts, EpochPass, LabelOrder, Orders
from headrace.doctor.evidence.ranks import Ranks, RankShare

__all__ = ["counts", "labels", "orders", "passes", "ranks"]


def passes(*orders: str, batches: str | None = None, num_samples: int = 100, batch_size: int = 10) -> Any:
    """One complete pass per word; equal words are equal orders, equal letters of `batches` equal batches."""
    return tuple(
        DrawnPass(
            num_batches=-(-num_samples // batch_size),
            num_samples=num_samples,
            num_different=num_samples,
            order_hash=_number(order),
            batches_hash=_number(order if batches is None else batches[place]),
        )
        for place, order in enumerate(orders)
    )


def _number(word: str) -> int:
    return int.from_bytes(word.encode())


def labels(mean_run: float, *, num_labels: int = 10, per_batch: float = 6.5) -> LabelOrder:
    """Classes of a set of 100 samples in batches of 10; well mixed if `mean_run` is about 1.1."""
    return LabelOrder(
        num_labels=num_labels, mean_run=mean_run, random_run=1.1, labels_per_batch=per_batch, random_per_batch=6.5
    )


def orders(**more: Any) -> Orders:
    """Three passes of a shuffling sampler over 100 rows in batches of 10, if nothing else is said."""
    facts: dict[str, Any] = {
        "sampler": "RandomSampler",
        "draws": "each-pass",
        "num_rows": 100,
        "batch_size": 10,
        "passes": passes("a", "b", "c"),
        "displacement": 0.33,
        "adjacency": 0.01,
        "role": "train",
    }
    return Orders(**{**facts, **more})


def counts(
    *numbers: int, said: int | None, source: str = "LineStream", with_workers: int | None = None, **more: Any
) -> EpochCounts:
    """Complete passes with so many batches each, of ten samples."""
    facts: dict[str, Any] = {
        "source": source,
        "source_at": None,
        "said_batches": said,
        "single": tuple(_pass(number) for number in numbers),
        "with_workers": () if with_workers is None else (_pass(with_workers),),
        "num_workers": 0 if with_workers is None else 2,
        "batch_size": 10,
        "is_stream": True,
    }
    return EpochCounts(**{**facts, **more})


def _pass(number: int) -> EpochPass:
    return EpochPass(num_batches=number, num_samples=10 * number, is_complete=True)


def ranks(
    *shares: int, shared: int = 0, union: int | None = None, num_batches: tuple[int, ...] = (), **more: Any
) -> Ranks:
    """So many different samples per rank, in batches of ten; each two ranks share `shared`."""
    facts: dict[str, Any] = {
        "world_size": len(shares),
        "how": "environment",
        "sampler": "DistributedSampler",
        "deals_out": True,
        "shares": tuple(
            RankShare(
                num_batches=num_batches[rank] if num_batches else -(-number // 10),
                num_samples=number,
                num_different=number,
            )
            for rank, number in enumerate(shares)
        ),
        "overlap": tuple(
            tuple(number if rank == other else shared for other in range(len(shares)))
            for rank, number in enumerate(shares)
        ),
        "num_union": sum(shares) - shared if union is None else union,
        "num_rows": sum(shares) - shared if union is None else union,
        "is_complete": True,
        "role": "train",
    }
    return Ranks(**{**facts, **more})
