"""Made-up readings of samples again."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.repeats import ChangedPart, Repeats, SampleRepeat

__all__ = ["frozen", "part", "repeat", "repeats"]


def part(path: str, kind: Any = "content", *, is_of_sample: bool = True) -> ChangedPart:
    """One thing that a reading changed; the sample's own array if nothing else is said."""
    return ChangedPart(path=path, kind=kind, is_of_sample=is_of_sample)


def repeat(*changed: ChangedPart, **more: Any) -> SampleRepeat:
    """One sample; it differs if something was changed. `repeats` gives it its row number."""
    fields = {"outcome": "differs" if changed else "equal", "fields": ("image",) if changed else (), **more}
    return SampleRepeat(index=-1, sample_id=-1, changed=changed, num_seeds=3, **fields)


def frozen(*drawn_first: str, **more: Any) -> SampleRepeat:
    """A sample that is the same under every seed."""
    return repeat(drawn_first=drawn_first, is_same_under_seeds=True, **more)


def repeats(*samples: SampleRepeat, **more: Any) -> Repeats:
    """The samples as rows 0, 1, 2, ... of a data set that holds records and draws nothing, if nothing else is said."""
    import dataclasses

    rows = tuple(dataclasses.replace(one, index=row, sample_id=row) for row, one in enumerate(samples))
    fields: dict[str, Any] = {"holds_records": True, "draws": (), "draws_later": (), "constant_generators": ()}
    return Repeats(samples=rows, **{**fields, **more})
