"""E0 and E1: which samples were delivered, how often, in which order and batches. Pure."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Literal

from headrace.doctor.evidence.equivalence import Difference, LevelResult
from headrace.doctor.sameness.multiset import IdSum
from headrace.doctor.sameness.naming import Ids
from headrace.doctor.sameness.passport import Epoch, Passport, order_hash
from headrace.errors import SampleId

__all__ = ["compare_order", "compare_samples"]

NOTHING = "nothing"
REPLACING = "draws samples with replacement"


def compare_samples(a: Passport, b: Passport, ids: Ids) -> LevelResult:
    """E0: the same samples, each as often, in each epoch."""
    num_compared = 0
    for number, (one, other) in enumerate(zip(a.epochs, b.epochs, strict=False)):
        names = ids.of(one), ids.of(other)
        sums = IdSum.of(names[0]), IdSum.of(names[1])
        num_compared += max(sum_.count for sum_ in sums)
        if sums[0] == sums[1]:
            continue
        return _another_multiset(a, b, names, number, is_cut=_is_cut(a, one) or _is_cut(b, other))
    unfinished = _unfinished(a, b)
    if unfinished:
        return _not_comparable("E0", unfinished, num_compared)
    if len(a.epochs) != len(b.epochs):
        return _not_comparable("E0", "the walks have not the same number of epochs", num_compared)
    return _refusing(a, b, num_compared) or LevelResult(level="E0", verdict="proven", num_compared=num_compared)


def _is_cut(side: Passport, epoch: Epoch) -> bool:
    """True for an epoch that would have gone on; one that broke off with an error delivers no more."""
    return not epoch.is_whole and not (side.stopped is not None and side.stopped.is_error)


def _another_multiset(
    a: Passport, b: Passport, names: tuple[list[SampleId], list[SampleId]], epoch: int, *, is_cut: bool
) -> LevelResult:
    counts = [collections.Counter(one) for one in names]
    more_a, more_b = counts[0] - counts[1], counts[1] - counts[0]
    num_compared, num_different = max(map(len, names)), more_a.total() + more_b.total()
    if is_cut:
        # Both beginnings may be of one and the same whole.
        shortest = min(map(len, names))
        if names[0][:shortest] == names[1][:shortest]:
            return _not_comparable("E0", _unfinished(a, b) or "one walk was left before the other", num_compared)
        reason = "only the beginnings of both were walked, and they are in another order"
        return _not_comparable("E0", _unfinished(a, b) or reason, num_compared)
    replacing = [side for side in (a, b) if any(REPLACING in note for note in side.introduction.notes)]
    if len(replacing) == 2 and not any(side.stopped for side in (a, b)):
        reason = "both draw samples with replacement, each time others: another multiset is no fault"
        return _not_comparable("E0", reason, num_compared)
    first = _first_of(names, more_a, more_b, counts, epoch, b_only=not more_a)
    reason = "; ".join(
        filter(
            None,
            [
                f"{more_a.total():,} more in A" if more_a else "",
                f"{more_b.total():,} more in B" if more_b else "",
                *_explanations(a, b),
            ],
        )
    )
    return LevelResult(
        level="E0",
        verdict="differs",
        reason=reason,
        first=first,
        num_compared=num_compared,
        num_different=num_different,
    )


def _first_of(
    names: tuple[list[SampleId], list[SampleId]],
    more_a: collections.Counter[SampleId],
    more_b: collections.Counter[SampleId],
    counts: Sequence[collections.Counter[SampleId]],
    epoch: int,
    *,
    b_only: bool,
) -> Difference:
    """The first sample, in the order of the side that has more of it, that is delivered too often there."""
    side, more = (1, more_b) if b_only else (0, more_a)
    seen: collections.Counter[SampleId] = collections.Counter()
    for position, sample_id in enumerate(names[side]):
        seen[sample_id] += 1
        # The delivery that the other side has no counterpart to.
        if sample_id in more and seen[sample_id] > counts[1 - side][sample_id]:
            return Difference(
                epoch=epoch,
                position=position,
                sample_id=sample_id,
                in_a=_times(counts[0][sample_id]),
                in_b=_times(counts[1][sample_id]),
            )
    raise AssertionError("the multisets are the same")


def _times(count: int) -> str:
    return {0: "not delivered", 1: "delivered once", 2: "delivered twice"}.get(count, f"delivered {count} times")


def _explanations(a: Passport, b: Passport) -> list[str]:
    """What the loaders themselves say about their numbers."""
    found = []
    for name, side in (("A", a), ("B", b)):
        if side.stopped is not None:
            found.append(f"{name} stopped: {side.stopped.reason}")
        if side.refused:
            found.append(f"{name} went on without {_listing(side.refused)}")
        other = b if side is a else a
        found += [f"{name} {note}" for note in side.introduction.notes if note not in other.introduction.notes]
    return found


def _refusing(a: Passport, b: Passport, num_compared: int) -> LevelResult | None:
    """The same samples, and yet one side had to replace or leave out others: another policy, or another failure."""
    if collections.Counter(a.refused) == collections.Counter(b.refused):
        return None
    extra = collections.Counter(a.refused) - collections.Counter(b.refused)
    extra = extra or collections.Counter(b.refused) - collections.Counter(a.refused)
    first = next(iter(extra))
    words = ["refused" if first in side.refused else "not refused" for side in (a, b)]
    return LevelResult(
        level="E0",
        verdict="differs",
        reason="; ".join(_explanations(a, b)),
        first=Difference(sample_id=first, in_a=words[0], in_b=words[1]),
        num_compared=num_compared,
        num_different=extra.total(),
    )


def _listing(ids: Sequence[SampleId]) -> str:
    more = f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
    return f"sample{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids[:3]))}{more}"


def _unfinished(a: Passport, b: Passport) -> str:
    """Why a whole was not walked though it was asked for; empty: it was."""
    for name, side in (("A", a), ("B", b)):
        if side.stopped is not None:
            return f"the walk of {name} ended early: {side.stopped.reason}"
    return ""


def compare_order(a: Passport, b: Passport, ids: Ids) -> LevelResult:
    """E1: the same order, and batches that end at the same places."""
    num_compared = 0
    for number, (one, other) in enumerate(zip(a.epochs, b.epochs, strict=False)):
        names = ids.of(one), ids.of(other)
        num_compared += max(map(len, names))
        if order_hash(one, names[0]) == order_hash(other, names[1]):
            continue
        cut = not (one.is_whole and other.is_whole)
        found = _another_order(names, (one, other), number, ignores_end=cut)
        if found is not None:
            return found
    unfinished = _unfinished(a, b)
    if unfinished:
        return _not_comparable("E1", unfinished, num_compared)
    return LevelResult(level="E1", verdict="proven", num_compared=num_compared)


def _another_order(
    names: tuple[list[SampleId], list[SampleId]], epochs: tuple[Epoch, Epoch], number: int, *, ignores_end: bool
) -> LevelResult | None:
    shortest, longest = min(map(len, names)), max(map(len, names))
    place = next((at for at in range(shortest) if names[0][at] != names[1][at]), None)
    if place is None and len(names[0]) != len(names[1]):
        if ignores_end:
            return None
        place = shortest
    if place is not None:
        sides = [str(one[place]) if place < len(one) else NOTHING for one in names]
        different = sum(a != b for a, b in zip(*names, strict=False)) + longest - shortest
        return LevelResult(
            level="E1",
            verdict="differs",
            reason=f"{different:,} of {longest:,} positions of epoch {number}",
            first=Difference(
                epoch=number,
                position=place,
                batch=_batch_at(epochs[0], place),
                sample_id=names[0][place] if place < len(names[0]) else names[1][place],
                in_a=sides[0],
                in_b=sides[1],
            ),
            num_compared=longest,
            num_different=different,
        )
    return _other_batches(epochs, number, ignores_end=ignores_end, num_compared=longest)


def _other_batches(
    epochs: tuple[Epoch, Epoch], number: int, *, ignores_end: bool, num_compared: int
) -> LevelResult | None:
    sizes = [[len(batch.samples) for batch in epoch.batches] for epoch in epochs]
    shortest = min(map(len, sizes)) - ignores_end
    place = next((at for at in range(shortest) if sizes[0][at] != sizes[1][at]), None)
    if place is None:
        if ignores_end or len(sizes[0]) == len(sizes[1]):
            return None
        place = shortest
    told = [f"{side[place]} samples" if place < len(side) else "no batch" for side in sizes]
    position = sum(sizes[0][:place])
    return LevelResult(
        level="E1",
        verdict="differs",
        reason=f"the same order, in other batches, from batch {place} of epoch {number} on",
        first=Difference(epoch=number, position=position, batch=place, in_a=told[0], in_b=told[1]),
        num_compared=num_compared,
        num_different=1,
    )


def _batch_at(epoch: Epoch, position: int) -> int | None:
    for number, batch in enumerate(epoch.batches):
        if position < len(batch.samples):
            return number
        position -= len(batch.samples)
    return None


def _not_comparable(level: Literal["E0", "E1"], reason: str, num_compared: int) -> LevelResult:
    return LevelResult(level=level, verdict="not comparable", reason=reason, num_compared=num_compared)
