"""E5: the batches as the training loop gets them: fields, dtype, shape, strides, device, pinning, bytes. Pure."""

from __future__ import annotations

from headrace.doctor.evidence.equivalence import Difference, LevelResult
from headrace.doctor.sameness.passport import Batch, Passport
from headrace.doctor.sameness.values import ABSENT, describe

__all__ = ["compare_batches"]


def compare_batches(a: Passport, b: Passport, fixed: frozenset[str], random: frozenset[str]) -> LevelResult:
    """Compares batch by batch; bytes of fields that are random are left to E4, forms are not."""
    pins = [one.introduction.pins for one in (a, b)]
    if pins[0] != pins[1]:
        words = ["pinned memory" if one else "pageable memory" for one in pins]
        return LevelResult(
            level="E5",
            verdict="differs",
            reason="pin_memory is set on one side only",
            first=Difference(in_a=words[0], in_b=words[1]),
        )
    num_compared = 0
    without: set[str] = set()
    for number, (one, other) in enumerate(zip(a.epochs, b.epochs, strict=False)):
        for place, (ours, theirs) in enumerate(zip(one.batches, other.batches, strict=False)):
            if not ours.form and not theirs.form:
                continue
            num_compared += 1
            found = _first(ours, theirs, fixed if random else None)
            if found is not None:
                field, in_a, in_b = found
                return LevelResult(
                    level="E5",
                    verdict="differs",
                    reason=f"from batch {place} of epoch {number} on",
                    first=Difference(epoch=number, batch=place, field=field, in_a=in_a, in_b=in_b),
                    num_compared=num_compared,
                    num_different=1,
                )
            without |= {field for field, value in ours.digests.items() if value is None}
        if len(one.batches) != len(other.batches) and one.is_whole and other.is_whole:
            words = [f"{len(epoch.batches)} batches" for epoch in (one, other)]
            first = Difference(
                epoch=number, batch=min(len(one.batches), len(other.batches)), in_a=words[0], in_b=words[1]
            )
            reason = f"another number of batches in epoch {number}"
            return LevelResult(level="E5", verdict="differs", reason=reason, first=first, num_compared=num_compared)
    stopped = next((side.stopped for side in (a, b) if side.stopped is not None), None)
    reason = (
        f"a walk ended early: {stopped.reason}"
        if stopped is not None
        else "no batch was delivered by both"
        if not num_compared
        else f"{', '.join(sorted(without))} cannot be written down as bytes"
        if without
        else ""
    )
    if reason:
        return LevelResult(level="E5", verdict="not comparable", reason=reason, num_compared=num_compared)
    reason = "form and bytes" if not random else "form of all fields, bytes of those that are not random"
    return LevelResult(level="E5", verdict="proven", reason=reason, num_compared=num_compared)


def _first(ours: Batch, theirs: Batch, fixed: frozenset[str] | None) -> tuple[str, str, str] | None:
    """(field, form here, form there) of the first difference.

    A batch's field is a sample's field of the same name. If no sample's field has the name, collate made it, perhaps of
    random ones: its bytes are compared only where no field is random (`fixed` is None then).
    """
    for field in dict.fromkeys([*ours.form, *theirs.form]):
        forms = [side.form.get(field) or ABSENT for side in (ours, theirs)]
        if forms[0] != forms[1]:
            return field, forms[0], forms[1]
        digests = [side.digests.get(field) for side in (ours, theirs)]
        if digests[0] != digests[1] and (fixed is None or field in fixed):
            return field, describe(digests[0]), describe(digests[1])
    return None
