"""The comparison as text: the verdict first, then the two sides, then level by level."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from headrace.doctor.evidence.equivalence import DeliverySide, Difference, Equivalence, LevelResult
from headrace.doctor.wording.paragraphs import labelled

__all__ = ["render", "verdict_line"]

MEANING = {
    "E0": "samples",
    "E1": "order, batches",
    "E2": "targets",
    "E3": "fixed fields",
    "E4": "random fields",
    "E5": "delivered batches",
}


def render(found: Equivalence, *, width: int = 80) -> str:
    """Returns the whole text."""
    lines = list(labelled("VERDICT", verdict_line(found), width))
    lines.append("")
    for name, side in (("A", found.side_a), ("B", found.side_b)):
        lines += labelled(name, _side(side), width)
    lines.append("")
    for one in found.levels:
        lines += _level(one, width)
    lines += _policy(found, width)
    return "\n".join(lines) + "\n"


def verdict_line(found: Equivalence) -> str:
    """Returns one sentence: the same, not the same and where first, or why it cannot be said."""
    if found.verdict == "same":
        return f"the same data: proven {_proven(found)} on {_covered(found)}"
    level = found.first_level
    if level is not None:
        return f"not the same: {_said(level)}"
    open_ = next(one for one in found.levels if one.verdict == "not comparable")
    proven = _proven(found)
    known = f"the same as far as compared (proven {proven}); " if proven else ""
    return f"inconclusive: {known}{open_.level} cannot be compared: {open_.reason}"


def _covered(found: Equivalence) -> str:
    number = found.side_a.num_samples[0] if found.side_a.num_samples else 0
    epochs = f", {found.num_epochs} epochs" if found.num_epochs > 1 else ""
    whole = "the first" if found.max_samples is not None and number >= found.max_samples else "all"
    part = f" (fields of one in {found.one_in})" if found.one_in > 1 else ""
    return f"{whole} {number:,} samples{epochs}{part}"


def _proven(found: Equivalence) -> str:
    """`E0-E4`, or `E0, E2, E3`."""
    proven = [one.level for one in found.levels if one.verdict == "proven"]
    numbers = [int(level[1]) for level in proven]
    # What there is nothing of does not break a row: without random fields, E0 to E3 and E5 are E0-E5.
    vacuous = {int(one.level[1]) for one in found.levels if one.verdict == "not asked" and one.reason}
    if len(numbers) > 1 and set(range(numbers[0], numbers[-1] + 1)) <= set(numbers) | vacuous:
        return f"E{numbers[0]}-E{numbers[-1]}"
    return ", ".join(proven)


def _said(level: LevelResult) -> str:
    """The first difference in words."""
    first = level.first
    if first is None:
        return level.reason
    if level.level == "E0":
        at = f" (position {first.position} of epoch {first.epoch})" if first.position is not None else ""
        return f"sample {_id(first)} is {first.in_a} in A and {first.in_b} in B{at}"
    if level.level == "E1":
        if first.sample_id is None:
            return f"other batches from batch {first.batch} of epoch {first.epoch} on: {first.in_a} in A, {first.in_b} in B"
        return f"from position {first.position} of epoch {first.epoch} on another order: {first.in_b} where {first.in_a} was"
    if level.level == "E5":
        where = f"batch {first.batch} of epoch {first.epoch}" if first.batch is not None else "batches"
        field = f", field {first.field}" if first.field else ""
        return f"{where}{field}: {first.in_a} in A, {first.in_b} in B"
    if first.field is None or first.in_a.startswith(("the same again", "drawn anew")):
        return f"{level.reason}, first with sample {_id(first)}"
    what = {"E2": "target", "E3": "field", "E4": "random field"}[level.level]
    return f"{what} {first.field} of sample {_id(first)} is {first.in_a} in A, {first.in_b} in B{_size(first)}"


def _size(first: Difference) -> str:
    if first.max_difference is None or first.differing_share is None or first.in_a.endswith(")"):
        return ""
    return f"; {first.differing_share:.0%} of the values differ, by at most {first.max_difference:.3g}"


def _id(first: Difference) -> str:
    text = str(first.sample_id)
    return text if len(text) <= 60 else f"...{text[-57:]}"


def _side(side: DeliverySide) -> str:
    counts = ", ".join(f"{number:,}" for number in side.num_samples)
    workers = f"{side.num_workers} worker{'' if side.num_workers == 1 else 's'}"
    parts = [f"{side.spec}  ({side.kind}, {workers}): {counts or 'no'} samples"]
    parts += side.notes
    if side.num_refused:
        parts.append(f"refused {side.num_refused:,}: {', '.join(map(str, side.refused[:3]))}")
    if side.stopped:
        parts.append(f"stopped: {side.stopped}")
    return "; ".join(parts)


def _level(one: LevelResult, width: int) -> Iterator[str]:
    head = f"{one.level} {MEANING[one.level]}".ljust(21) + one.verdict.ljust(16)
    about = one.reason
    if one.verdict == "differs" and one.first is not None:
        about = f"{one.reason}; first: {_said(one)}" if one.reason else _said(one)
        if one.reason and _said(one).startswith(one.reason):
            about = f"{_said(one)}: {one.first.in_a} in A, {one.first.in_b} in B"
    yield from textwrap.wrap(
        about, width=width, initial_indent=head, subsequent_indent=" " * 37, break_on_hyphens=False
    ) or [head.rstrip()]


def _policy(found: Equivalence, width: int) -> Iterator[str]:
    told = {
        "counter": "counter: random fields were compared bit for bit as delivered",
        "stream": "stream: workers draw in their own order, so random fields were compared with generators set back, and "
        "as delivered no draws may be shared or repeated",
        "frozen": "frozen: random fields were compared with generators set back before each sample only",
    }
    by = {
        "names": "the data set's names",
        "rows": "row numbers",
        "keys": "the keys in the samples",
        "contents": "digests of their contents, since they have no ids",
    }
    yield ""
    yield from labelled("ids", by[found.ids], width)
    if found.policy is not None:
        yield from labelled("policy", told[found.policy], width)
    if any("budget" in side.stopped for side in (found.side_a, found.side_b)):
        yield from labelled("do", "--budget 10m gives it more time, --samples 1000 takes fewer samples", width)
    levels = {one.level: one.verdict for one in found.levels}
    if levels["E1"] == "differs" and list(levels.values()).count("differs") == 1 and levels["E0"] == "proven":
        yield from labelled("do", "--level E0,E2,E3,E4 compares the samples whatever their order", width)
