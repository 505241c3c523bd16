"""The same sample on both sides: matches deliveries by id, and compares the digests of their fields. Pure."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from headrace.doctor.evidence.equivalence import Difference
from headrace.doctor.sameness.naming import Ids
from headrace.doctor.sameness.passport import Epoch, Sample
from headrace.errors import SampleId

__all__ = ["FieldsCompared", "Pair", "Pairs", "compare_fields", "describe", "pair_up"]

ABSENT = "no such field"
"""In the place of a value."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """One delivery of one sample on both sides."""

    sample_id: SampleId
    epoch: int
    position: int
    """On the first side."""
    batch: int
    a: Sample
    b: Sample


Pairs = Sequence[Pair]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldsCompared:
    """What came out of comparing some fields of matched samples."""

    fields: frozenset[str]
    num_compared: int
    num_different: int
    first: Difference | None
    differing: tuple[str, ...]
    """Fields that differ somewhere."""
    without_digest: tuple[str, ...]
    """Fields that have no bytes of their own somewhere."""


def pair_up(ids: Ids, one: Epoch, other: Epoch) -> Pairs:
    """Returns the samples that both sides deliver, in the order of the first side."""
    number = next((batch.epoch for batch in (*one.batches, *other.batches)), 0)
    theirs: dict[SampleId, list[int]] = collections.defaultdict(list)
    for position, sample_id in enumerate(ids.of(other)):
        theirs[sample_id].append(position)
    batches = list(_batch_numbers(one))
    taken: collections.Counter[SampleId] = collections.Counter()
    found = []
    for position, sample_id in enumerate(ids.of(one)):
        places = theirs.get(sample_id, ())
        if taken[sample_id] < len(places):
            at = places[taken[sample_id]]
            taken[sample_id] += 1
            found.append(Pair(sample_id, number, position, batches[position], one.samples[position], other.samples[at]))
    return found


def _batch_numbers(epoch: Epoch) -> Iterator[int]:
    for number, batch in enumerate(epoch.batches):
        yield from [number] * len(batch.samples)


def compare_fields(epochs: Iterable[Pairs], fields: frozenset[str]) -> FieldsCompared:
    """Compares some fields of all matched samples that were digested."""
    num_compared = num_different = 0
    first: Difference | None = None
    differing: dict[str, None] = {}
    without: dict[str, None] = {}
    for pair in (pair for pairs in epochs for pair in pairs):
        one, other = pair.a.fields, pair.b.fields
        if one is None or other is None:
            continue
        num_compared += 1
        here = []
        for field in sorted(fields & (one.keys() | other.keys())):
            a, b = one.get(field, ABSENT), other.get(field, ABSENT)
            if a is None and b is None:
                without[field] = None
            elif a != b:
                here.append((field, a, b))
        differing |= dict.fromkeys(field for field, _, _ in here)
        num_different += bool(here)
        if here and first is None:
            field, a, b = here[0]
            first = Difference(
                epoch=pair.epoch,
                position=pair.position,
                batch=pair.batch,
                sample_id=pair.sample_id,
                field=field,
                in_a=describe(a),
                in_b=describe(b),
            )
    return FieldsCompared(
        fields=fields,
        num_compared=num_compared,
        num_different=num_different,
        first=first,
        differing=tuple(differing),
        without_digest=tuple(without),
    )


def describe(value: str | None) -> str:
    """Returns `float32[3, 8, 8], digest 1f0c2a9b` of what a walk tells of a field."""
    if value is None:
        return "something without bytes of its own"
    form, colon, digest = value.rpartition(":")
    return f"{form}, digest {digest[:8]}" if colon else value
