"""Finds out that a loader is an earlier one, made anew: by the same call, over the same data, when that one was done.

So scripts do that make their loader inside the loop over epochs. Two loaders of one helper stay two: they are alive at
the same time, or over other data, or the helper was called from elsewhere; and so do those of two trainings, of which
each begins with an optimizer over new parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.doctor.watch.record import LoaderRecord
from headrace.doctor.watch.timeline import Timeline

__all__ = ["predecessor"]


def predecessor(made: LoaderRecord, records: Iterable[LoaderRecord], timeline: Timeline) -> LoaderRecord | None:
    """Returns the record of the loader in whose place this one was made; None: it stands for itself.

    To be asked when its first walk begins: not before is the old loader gone from `loader = DataLoader(...)`.

    Args:
        made: The loader whose first walk begins.
        records: Of all loaders of the process.
        timeline: Says when the newest training began.
    """
    if made.calls is None or made.facts is None or made.likeness is None:
        return None
    found = [one for one in records if one is not made and _is_before(one, made, timeline)]
    # Loaders that are made in turn, e.g. two by one comprehension in each epoch, are taken up in the same turn.
    return min(found, key=lambda one: (not one.has_ended, one.last_start_s), default=None)


def _is_before(old: LoaderRecord, made: LoaderRecord, timeline: Timeline) -> bool:
    return (
        old.calls == made.calls
        and old.facts == made.facts
        and old.is_gone
        and (old.has_ended or old.is_complete)
        and timeline.training_began_s <= old.last_seen_s <= made.made_s
        and old.likeness is not None
        and made.likeness is not None
        and old.likeness.is_like(made.likeness)
    )
