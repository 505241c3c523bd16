"""Under which ids two deliveries can be compared: names, else rows, else keys, else contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from headrace.doctor.sameness.passport import Epoch, Passport
from headrace.errors import SampleId

__all__ = ["Ids", "choose_ids"]


class Ids:
    """Gives every sample of both sides its id."""

    def __init__(self, kind: Literal["names", "rows", "keys", "contents"], fields: frozenset[str]) -> None:
        self.kind = kind
        self.fields = fields
        """For contents: the fields that make the id."""

    def of(self, epoch: Epoch) -> list[SampleId]:
        """Returns the ids of one epoch, in order."""
        if self.kind == "contents":
            return [sample.content(self.fields) for sample in epoch.samples]
        if self.kind == "rows":
            return [-1 if sample.row is None else sample.row for sample in epoch.samples]
        return [-1 if sample.name is None else sample.name for sample in epoch.samples]


def choose_ids(a: Passport, b: Passport, fixed: frozenset[str]) -> Ids:
    """Returns what both sides' samples have, and have in common.

    Names count only if there are some on both sides that are the same: two folders of the same pictures may lie apart.
    """
    sides = (a, b)
    if _all_have("name", sides) and (not any(one.introduction.has_rows for one in sides) or _share_names(sides)):
        has_names = any(one.introduction.has_names or not one.introduction.has_rows for one in sides)
        kind: Literal["names", "rows", "keys"] = "names" if has_names else "rows"
        return Ids("keys" if not any(one.introduction.has_rows for one in sides) else kind, frozenset())
    if all(one.introduction.has_rows for one in sides) and _all_have("row", sides):
        return Ids("rows", frozenset())
    return Ids("contents", fixed)


def _all_have(what: str, sides: Sequence[Passport]) -> bool:
    return all(getattr(sample, what) is not None for one in sides for epoch in one.epochs for sample in epoch.samples)


def _share_names(sides: Sequence[Passport]) -> bool:
    a, b = ({sample.name for epoch in one.epochs for sample in epoch.samples} for one in sides)
    return not a or not b or bool(a & b)
