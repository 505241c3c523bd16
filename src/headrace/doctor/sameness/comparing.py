"""Two passports in, one answer per level out. Pure: the same passports, the same answer.

Samples are matched by id and, where one is delivered several times in an epoch, by its how many-th delivery: whatever
the orders are, targets and fields of the same samples are compared.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

from headrace.doctor.evidence.equivalence import (
    LEVELS,
    DeliverySide,
    Equivalence,
    Level,
    LevelResult,
    Policy,
)
from headrace.doctor.sameness.delivered_batches import compare_batches
from headrace.doctor.sameness.naming import Ids, choose_ids
from headrace.doctor.sameness.passport import Passport, Sample
from headrace.doctor.sameness.randomness import compare_random
from headrace.doctor.sameness.samples import compare_order, compare_samples
from headrace.doctor.sameness.values import FieldsCompared, Pairs, compare_fields, pair_up

__all__ = ["compare_passports", "suspects"]

MAX_REFUSED = 10
"""Refused samples that are named."""


def compare_passports(
    a: Passport,
    b: Passport,
    *,
    specs: tuple[str, str],
    levels: Iterable[Level] = ("E0", "E1", "E2", "E3", "E4"),
    one_in: int = 1,
    max_samples: int | None = None,
) -> Equivalence:
    """Returns whether two deliveries are the same.

    Args:
        a: What the first loader delivered.
        b: What the second did.
        specs: How they are called.
        levels: What is asked for.
        one_in: Of how many samples the fields of one were digested.
        max_samples: At how many samples of an epoch the walks were left.
    """
    asked = frozenset(levels)
    work = _Comparison(a, b)
    results = {level: work.answer(level) if level in asked else _not_asked(level) for level in LEVELS}
    return Equivalence(
        side_a=_side(a, specs[0]),
        side_b=_side(b, specs[1]),
        levels=tuple(results.values()),
        policy=work.policy if "E4" in asked else None,
        ids=work.ids.kind,
        num_epochs=min(len(a.epochs), len(b.epochs)),
        one_in=one_in,
        max_samples=max_samples,
    )


def suspects(a: Passport, b: Passport, most: int) -> list[Sample]:
    """Returns samples of which a field that is taken for fixed differs: perhaps it is random, and seldom."""
    work = _Comparison(a, b)
    found: dict[object, Sample] = {}
    for pairs in work.pairs:
        for pair in pairs:
            one, other = pair.a.fields or {}, pair.b.fields or {}
            if any(one.get(field) != other.get(field) for field in work.fixed & one.keys() & other.keys()):
                found.setdefault(pair.a.row, pair.a)
                if len(found) >= most:
                    return list(found.values())
    return list(found.values())


class _Comparison:
    """What the levels share."""

    def __init__(self, a: Passport, b: Passport) -> None:
        self.a, self.b = a, b
        rates = {**a.traits.rates, **b.traits.rates}
        # What no read has shown is taken for fixed: then it must be equal.
        self.random = a.traits.random | b.traits.random
        fields = {field for one in (a, b) for epoch in one.epochs for s in epoch.samples for field in s.fields or ()}
        self.fields = frozenset(fields | set(rates))
        self.fixed = self.fields - self.random
        self.targets = frozenset({*a.traits.targets, *b.traits.targets}) & self.fixed
        self.ids: Ids = choose_ids(a, b, self.fixed)
        self.epochs = list(zip(a.epochs, b.epochs, strict=False))
        self.pairs: list[Pairs] = [pair_up(self.ids, one, other) for one, other in self.epochs]
        self.policy: Policy | None = None

    def answer(self, level: Level) -> LevelResult:
        """Returns the answer at one level: none where one side's samples cannot be seen."""
        reasons = {name: side.undivided for name, side in (("A", self.a), ("B", self.b)) if side.undivided}
        if not reasons or level == "E5" or (level == "E4" and not self.random):
            return self.result(level)
        if len(reasons) == 2:
            # Equal batches are equal samples. Batches of other rows may be of the same samples.
            found = self.result(level)
            if found.verdict != "differs" or level not in {"E0", "E1"}:
                return found
        name, reason = next(iter(reasons.items()))
        return LevelResult(
            level=level, verdict="not comparable", reason=f"the samples of {name} are not seen: {reason}"
        )

    def result(self, level: Level) -> LevelResult:
        """Returns the answer at one level, of what counts as a sample."""
        if not any(epoch.samples for side in (self.a, self.b) for epoch in side.epochs):
            return self._nothing(level)
        if level in {"E0", "E1"}:
            return self._order(level)
        if level == "E2":
            return self._fields(level, self.targets, "no field is known to be a target")
        if level == "E3":
            return self._fields(level, self.fixed - self.targets, "no other field is fixed")
        if level == "E4":
            found, self.policy = compare_random(self.a, self.b, self.ids, self.pairs, self.random)
            return found
        return compare_batches(self.a, self.b, self.fixed, self.random)

    def _nothing(self, level: Level) -> LevelResult:
        why = next((side.stopped.reason for side in (self.a, self.b) if side.stopped is not None), "")
        return LevelResult(
            level=level, verdict="not comparable", reason=f"neither delivers a sample{f': {why}' if why else ''}"
        )

    def _order(self, level: Level) -> LevelResult:
        if self.ids.kind == "contents" and not self.fixed:
            reason = "the samples have no ids, and their contents are random, so they cannot be told apart"
            return LevelResult(level=level, verdict="not comparable", reason=reason)
        if self.ids.kind == "contents" and any(
            sample.fields is None for one, other in self.epochs for epoch in (one, other) for sample in epoch.samples
        ):
            reason = "the samples have no ids, and not all contents were digested"
            return LevelResult(level=level, verdict="not comparable", reason=reason)
        compare = compare_samples if level == "E0" else compare_order
        return compare(self.a, self.b, self.ids)

    def _fields(self, level: Level, fields: frozenset[str], none: str) -> LevelResult:
        if not fields:
            return LevelResult(level=level, verdict="not asked", reason=none)
        if self.ids.kind == "contents":
            return self._contents(level)
        found = _as_result(level, compare_fields(self.pairs, fields))
        if found.verdict == "differs" and self.ids.kind == "rows" and self._is_renumbered():
            reason = (
                f"{found.reason}; the same contents come under other row numbers: the data sets are in another order"
            )
            return dataclasses.replace(found, reason=reason)
        return found

    def _is_renumbered(self) -> bool:
        """True if both deliver the same contents, and only the rows are others."""
        contents = Ids("contents", self.fixed)
        return all(
            collections.Counter(contents.of(one)) == collections.Counter(contents.of(other))
            for one, other in self.epochs
        )

    def _contents(self, level: Level) -> LevelResult:
        """Ids that are made of the contents: the same ids are the same contents."""
        samples = self._order("E0")
        reason = "samples have no ids of their own: they are told apart by these fields"
        if samples.verdict == "proven":
            return LevelResult(level=level, verdict="proven", reason=reason, num_compared=samples.num_compared)
        reason += ", so that other contents are other samples (see E0)"
        return LevelResult(level=level, verdict="not comparable", reason=reason, num_compared=samples.num_compared)


def _as_result(level: Level, found: FieldsCompared) -> LevelResult:
    if found.first is not None:
        return LevelResult(
            level=level,
            verdict="differs",
            reason=f"{_fields(found.differing)} of {found.num_different:,} of {found.num_compared:,} samples",
            first=found.first,
            num_compared=found.num_compared,
            num_different=found.num_different,
        )
    if not found.num_compared:
        return LevelResult(level=level, verdict="not comparable", reason="they have no sample in common")
    if found.without_digest:
        return LevelResult(
            level=level,
            verdict="not comparable",
            reason=f"{_fields(found.without_digest)} cannot be written down as bytes",
            num_compared=found.num_compared,
        )
    return LevelResult(
        level=level, verdict="proven", reason=_fields(sorted(found.fields)), num_compared=found.num_compared
    )


def _fields(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - 4} more" if len(listed) > 4 else ""
    return f"field{'s' if len(listed) > 1 else ''} {', '.join(listed[:4])}{more}"


def _not_asked(level: Level) -> LevelResult:
    return LevelResult(level=level, verdict="not asked")


def _side(passport: Passport, spec: str) -> DeliverySide:
    return DeliverySide(
        spec=spec,
        kind=passport.introduction.kind,
        num_workers=passport.introduction.num_workers,
        num_samples=tuple(len(epoch.samples) for epoch in passport.epochs),
        refused=passport.refused[:MAX_REFUSED],
        num_refused=len(passport.refused),
        stopped="" if passport.stopped is None else passport.stopped.reason,
        notes=passport.introduction.notes,
    )
