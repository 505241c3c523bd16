"""E4: fields that are random. Never called the same without saying by which policy. Pure.

equal as delivered?  ── yes ─▶ counter: what is drawn depends on seed, epoch and sample, as far as these two show
     │ no
both say so (headrace's loader)?  ── yes, one seed ─▶ differs
     │ no
do workers draw alike, does an epoch repeat another?  ── yes ─▶ differs
     │ no
equal with all generators set back before each sample?  ── yes ─▶ stream, or frozen;  no ─▶ differs
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Literal

from headrace.doctor.evidence.equivalence import Difference, LevelResult, Policy
from headrace.doctor.sameness.naming import Ids
from headrace.doctor.sameness.passport import Passport, SharedDraws
from headrace.doctor.sameness.values import FieldsCompared, Pairs, compare_fields, pair_up

__all__ = ["compare_random"]

CHANCE = 1e-6
"""How probable an accident may be that is called a repetition: one in a million."""
FEWEST_READS = 8
"""Samples read before "fixed here, random there" is more than an accident."""
MOSTLY = 0.5
"""Share of samples that must differ under different seeds for the same."""


def compare_random(
    a: Passport, b: Passport, ids: Ids, epochs: Sequence[Pairs], fields: frozenset[str]
) -> tuple[LevelResult, Policy | None]:
    """Returns the answer, and the policy that it rests on."""
    if not fields:
        return LevelResult(level="E4", verdict="not asked", reason="no field is random"), None
    delivered = compare_fields(epochs, fields)
    if not delivered.num_compared:
        return _not_comparable("they have no sample in common", 0), None
    if delivered.without_digest:
        reason = f"{', '.join(delivered.without_digest)} cannot be written down as bytes"
        return _not_comparable(reason, delivered.num_compared), None
    if delivered.first is None:
        reason = f"{_named(fields)} bit for bit as delivered"
        return LevelResult(level="E4", verdict="proven", reason=reason, num_compared=delivered.num_compared), "counter"
    lone = _random_on_one_side(a, b, fields)
    if lone:
        return _differs(delivered, lone), None
    introductions = (a.introduction, b.introduction)
    if all(one.draws_by_key for one in introductions):
        if introductions[0].seed == introductions[1].seed:
            return _differs(delivered, "both loaders draw by seed, epoch and sample, from one seed"), "counter"
        seeds = " and ".join(str(one.seed) for one in introductions)
        return _not_comparable(f"the loaders draw by key, from the seeds {seeds}", delivered.num_compared), "counter"
    fault = _fault(a, b, ids, fields)
    if fault is not None:
        return fault, "stream"
    return _frozen(a, b, ids, delivered, fields)


def _frozen(
    a: Passport, b: Passport, ids: Ids, delivered: FieldsCompared, fields: frozenset[str]
) -> tuple[LevelResult, Policy | None]:
    if a.frozen is None or b.frozen is None:
        reason = "drawn otherwise in each, and the generators of at least one cannot be set back sample by sample"
        return _not_comparable(reason, delivered.num_compared), None
    unseeded = (a.traits.unseeded | b.traits.unseeded) & fields
    found = compare_fields([pair_up(ids, a.frozen, b.frozen)], fields)
    if not found.num_compared:
        return _not_comparable("no sample was delivered by both with its generators set back", 0), None
    if found.first is None:
        follows = all(side.follows_draws or side.introduction.num_workers < 2 for side in (a, b))
        is_stream = follows and min(len(a.epochs), len(b.epochs)) > 1
        reason = f"{_named(fields)} bit for bit with generators set back before each sample"
        reason += "; no two workers draw alike, no epoch repeats another" if is_stream else ""
        return (
            LevelResult(level="E4", verdict="proven", reason=reason, num_compared=found.num_compared),
            "stream" if is_stream else "frozen",
        )
    if unseeded & set(found.differing):
        reason = f"{_named(unseeded)} changes from read to read although every generator is set back"
        return _not_comparable(reason, found.num_compared), None
    if a.is_at_once != b.is_at_once:
        # A batch may draw for all its rows with one call, and then draws others for one row.
        reason = "one data set is asked for whole batches and the other row by row: they need not draw alike"
        return _not_comparable(reason, found.num_compared), None
    if a.introduction.draws_by_key != b.introduction.draws_by_key:
        # One that is seeded inside each sample, by key, does not listen to what is set back around it.
        reason = (
            "one loader draws by key and the other from its workers' generators: their draws have nothing in common"
        )
        return _not_comparable(reason, found.num_compared), None
    return _differs(found, "also with all generators set back before each sample"), "frozen"


def _random_on_one_side(a: Passport, b: Passport, fields: frozenset[str]) -> str:
    """`image is random in A and fixed in B`; empty if both sides' reads do not say so."""
    for field in sorted(fields):
        for (name, side), (other_name, other) in ((("A", a), ("B", b)), (("B", b), ("A", a))):
            rate, fixed = side.traits.rates.get(field, 0.0), other.traits.rates.get(field)
            is_sure = min(side.traits.num_samples, other.traits.num_samples) >= FEWEST_READS
            if is_sure and rate >= MOSTLY and fixed == 0 and field not in other.traits.unseeded:
                return f"{field} is random in {name} and fixed in {other_name}"
    return ""


def _fault(a: Passport, b: Passport, ids: Ids, fields: frozenset[str]) -> LevelResult | None:
    """What makes one side's draws depend on its layout."""
    both = (("A", a), ("B", b))
    num_compared = sum(len(epoch.samples) for epoch in a.epochs)
    found = _same_draws(
        both,
        lambda side: side.shared_draws,
        "workers of {sides} draw the same random numbers ({generator})",
        num_compared,
    ) or _same_draws(
        both,
        lambda side: side.repeated_draws,
        "epochs of {sides} draw the same random numbers ({generator})",
        num_compared,
    )
    if found is not None:
        return found
    repeats = {name: _repeated(side, ids, fields) for name, side in both}
    first = next((one for one in repeats.values() if one is not None), None)
    if first is None:
        return None
    words = ["the same again in epoch 1" if repeats[name] is not None else "drawn anew in epoch 1" for name, _ in both]
    return LevelResult(
        level="E4",
        verdict="differs",
        reason=f"{' and '.join(name for name, one in repeats.items() if one is not None)} repeats its random draws in "
        "every epoch",
        first=Difference(epoch=1, position=first[1], sample_id=first[2], field=first[0], in_a=words[0], in_b=words[1]),
        num_compared=num_compared,
    )


def _same_draws(
    both: Sequence[tuple[str, Passport]],
    draws_of: Callable[[Passport], Sequence[SharedDraws]],
    told: str,
    num_compared: int,
) -> LevelResult | None:
    """One state of a generator for two samples."""
    seen = {name: draws_of(side)[0] for name, side in both if draws_of(side)}
    if not seen:
        return None
    first = next(iter(seen.values()))
    words = [
        f"one state for samples {seen[name].samples[0]} and {seen[name].samples[1]}"
        if name in seen
        else "no draws are shared"
        for name, _ in both
    ]
    return LevelResult(
        level="E4",
        verdict="differs",
        reason=told.format(sides=" and ".join(seen), generator=first.generator),
        first=Difference(epoch=0, sample_id=first.samples[1], in_a=words[0], in_b=words[1]),
        num_compared=num_compared,
    )


def _repeated(side: Passport, ids: Ids, fields: frozenset[str]) -> tuple[str, int, str | int] | None:
    """(field, position, id) of the first sample of epoch 1, if all of them are as in epoch 0 and that is no accident."""
    if len(side.epochs) < 2:
        return None
    pairs = pair_up(ids, side.epochs[1], side.epochs[0])
    for field in sorted(fields):
        rate = side.traits.rates.get(field, 0.0)
        both = [pair for pair in pairs if field in (pair.a.fields or ()) and field in (pair.b.fields or ())]
        values = collections.Counter((pair.a.fields or {}).get(field) for pair in both)
        if not rate or not both or (1 - rate) ** len(both) > CHANCE or len(values) == 1:
            continue
        if all((pair.a.fields or {})[field] == (pair.b.fields or {})[field] for pair in both):
            return field, both[0].position, both[0].sample_id
    return None


def _differs(found: FieldsCompared, why: str) -> LevelResult:
    return LevelResult(
        level="E4",
        verdict="differs",
        reason=f"{_named(found.differing)} of {found.num_different:,} of {found.num_compared:,} samples, {why}",
        first=found.first,
        num_compared=found.num_compared,
        num_different=found.num_different,
    )


def _not_comparable(reason: str, num_compared: int) -> LevelResult:
    verdict: Literal["not comparable"] = "not comparable"
    return LevelResult(level="E4", verdict=verdict, reason=reason, num_compared=num_compared)


def _named(fields: frozenset[str] | Sequence[str]) -> str:
    listed = sorted(fields)
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    return f"field{'s' if len(listed) > 1 else ''} {', '.join(listed[:4])}{more}"
