"""Turns what `watch` saw of loaders into the evidence that the rules about orders read: one rule serves both."""

from __future__ import annotations

from headrace.doctor.evidence.orders import DrawnPass, EpochCounts, EpochPass, Orders
from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces, PassTrace

__all__ = ["counts_of", "orders_of", "watched_orders"]


FEWEST_ANEW = 3
"""Loaders that one call must have made before their passes are taken for epochs: two may be two experiments."""


def watched_orders(seen: LoaderTraces) -> tuple[Orders, ...]:
    """Returns the evidence of every loader that was walked more than once and says what it draws.

    Of one that is made anew, only if that happened often enough, and the same model is trained on it.
    """
    loaders = [
        one for one in seen.loaders if one.num_made == 1 or (one.num_made >= FEWEST_ANEW and one.role == "train")
    ]
    return tuple(found for one in loaders if (found := orders_of(one)) is not None)


def orders_of(seen: LoaderTrace) -> Orders | None:
    """Returns the orders of one loader; None if fewer than two whole passes with known orders were seen."""
    known = [one for one in seen.passes if one.is_exhausted and one.order_hash is not None and one.num_samples]
    if len(known) < 2:
        return None
    place = seen.iter_places[0][0] if seen.iter_places else None
    return Orders(
        sampler=seen.sampler_kind,
        passes=tuple(_drawn(one, number) for number, one in enumerate(known)),
        draws="each-pass" if seen.shuffles else "never",
        num_rows=seen.num_samples,
        batch_size=seen.batch_size,
        is_sequential=not seen.shuffles,
        set_epoch_of=seen.sampler_kind if seen.has_set_epoch else None,
        epochs_told=seen.num_set_epochs >= 2,
        epoch_loop_at=place or seen.where,
        role=seen.role if seen.role in {"train", "evaluation"} else None,
    )


def counts_of(seen: LoaderTrace) -> EpochCounts | None:
    """Returns the numbers of batches of its whole passes, without what `len` says; None: fewer than two."""
    whole = [one for one in seen.passes if one.is_exhausted]
    if len(whole) < 2:
        return None
    return EpochCounts(
        source=seen.dataset_kind.rpartition(".")[2],
        source_at=seen.where,
        said_batches=None,
        single=tuple(
            EpochPass(num_batches=one.num_batches, num_samples=one.num_samples, is_complete=True) for one in whole
        ),
        batch_size=seen.batch_size,
        drop_last=seen.drop_last,
    )


def _drawn(one: PassTrace, number: int) -> DrawnPass:
    """A pass; its batches are not known, so they are told as different ones."""
    return DrawnPass(
        num_batches=one.num_batches,
        num_samples=one.num_samples or 0,
        num_different=one.num_samples or 0,
        order_hash=one.order_hash or 0,
        batches_hash=number,
    )
