"""Which fields do workers deliver otherwise than one process? Pure: digests in, differences out."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.doctor.walks.field_digests import Digests, is_same
from headrace.doctor.walks.journal import Event

__all__ = ["Index", "by_index", "differing", "fixed_fields"]

Index = str | int
"""An index as the journal names it."""


def by_index(journals: Iterable[Sequence[Event]]) -> dict[Index, list[tuple[int, Digests]]]:
    """Returns, for each index, the worker and the digests of each sample that came out of it."""
    found: dict[Index, list[tuple[int, Digests]]] = collections.defaultdict(list)
    for worker, events in enumerate(journals):
        for event in events:
            if event["at"] == "end" and event["index"] is not None:
                found[event["index"]].append((worker, event["fields"]))
    return dict(found)


def fixed_fields(reads: Mapping[Index, Sequence[Digests]]) -> tuple[str, ...]:
    """Returns the fields that are the same in every read of the same sample in one process, under different seeds.

    Fields that hold what has no digest are left out, and so are fields that not every sample has.
    """
    if not reads:
        return ()
    everywhere = set.intersection(*(set(one) for samples in reads.values() for one in samples))
    first = next(iter(reads.values()))[0]
    return tuple(
        field
        for field in first
        if field in everywhere
        and all(samples[0][field] is not None for samples in reads.values())
        and all(is_same(samples[0][field], other[field]) for samples in reads.values() for other in samples[1:])
    )


def differing(
    single: Mapping[Index, Digests],
    walked: Mapping[Index, Sequence[tuple[int, Digests]]],
    fields: Iterable[str],
) -> dict[str, list[Index]]:
    """Returns, for each field, the indices whose sample from a worker is not that of one process."""
    found = {}
    for field in fields:
        if _is_of_the_worker(field, single, walked):
            continue
        indices = [
            index
            for index, digests in single.items()
            if any(not is_same(digests.get(field), one.get(field)) for _, one in walked.get(index, ()))
        ]
        if indices:
            found[field] = indices
    return found


def _is_of_the_worker(
    field: str, single: Mapping[Index, Digests], walked: Mapping[Index, Sequence[tuple[int, Digests]]]
) -> bool:
    """True for a field that says who made the sample (worker number, process), and nothing about the sample."""
    values: dict[int, set[Any]] = collections.defaultdict(set)
    for index, samples in walked.items():
        if index in single:
            for worker, digests in samples:
                values[worker].add(_key(digests.get(field)))
    alone = {_key(digests.get(field)) for digests in single.values()}
    return len(alone) == 1 and len(single) > 1 and all(len(seen) == 1 for seen in values.values())


def _key(entry: Sequence[Any] | None) -> Any:
    return None if entry is None else entry[0]
