"""Turns what `watch` saw of loaders into the evidence that the rules about orders read: one rule serves both."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from headrace.doctor.evidence.orders import DrawnPass, EpochCounts, EpochPass, Orders
from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces, PassTrace

__all__ = ["counts_of", "orders_of", "watched_orders"]


FEWEST_ANEW = 3
"""Loaders that one line must have made before their passes are taken for epochs: two may be two experiments."""


def watched_orders(seen: LoaderTraces) -> tuple[Orders, ...]:
    """Returns the evidence of every loader that was walked more than once and says what it draws.

    A loader that one line makes anew for each epoch, over the same samples, counts as one loader.
    """
    loaders = (*seen.loaders, *_made_anew(seen.loaders))
    return tuple(found for one in loaders if (found := orders_of(one)) is not None)


def _made_anew(loaders: Sequence[LoaderTrace]) -> Iterator[LoaderTrace]:
    groups: dict[tuple[object, ...], list[LoaderTrace]] = {}
    for one in loaders:
        if one.num_passes == 1 and one.where is not None and one.drawn_digest is not None and one.role == "train":
            groups.setdefault((one.where, one.drawn_digest, one.sampler_kind, one.batch_size), []).append(one)
    for members in groups.values():
        if len(members) >= FEWEST_ANEW:
            yield dataclasses.replace(
                members[0],
                passes=tuple(each for one in members for each in one.passes),
                num_passes=len(members),
                num_set_epochs=sum(one.num_set_epochs for one in members),
            )


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
