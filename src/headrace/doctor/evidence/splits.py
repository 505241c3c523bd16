"""Samples that are both trained and evaluated on."""

from __future__ import annotations

import dataclasses
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.doctor.evidence.passes import LoaderTraces
from headrace.errors import SampleId

__all__ = ["SplitOverlap", "split_overlap"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitOverlap(Evidence):
    """A training and an evaluation split, held against each other: of several pairs, the one that shares most."""

    train: str
    """What the training split is called, e.g. `the loader at train.py:12`."""
    evaluation: str
    num_shared: int
    """Samples that are in both; 0: the splits are disjoint."""
    num_train: int | None
    num_evaluation: int | None
    """Samples of each; None: not known."""
    first_ids: tuple[SampleId, ...]
    """The first samples that are in both."""
    basis: Literal["drawn", "declared", "content"]
    """drawn: the numbers that both loaders drew from one data set; declared: the rows that the splits say they hold;
    content: equal digests of the samples."""
    has_disjoint: bool = False
    """True if another evaluation split is disjoint from everything that is trained on: this one may measure the
    training samples on purpose."""
    where: str | None = None
    """`file:line` of the user's code that made the evaluation split."""


def split_overlap(seen: LoaderTraces) -> SplitOverlap | None:
    """Returns what the loaders of a run say about it; None if there is no pair whose samples are known.

    An evaluation loader counts only if it overlaps with every training loader over the same data: with several folds,
    the validation part of one is the training part of another, and each is disjoint from its own.
    """
    known = [one for one in seen.loaders if one.num_drawn and one.root is not None]
    shared = {(train, evaluation): (number, ids) for train, evaluation, number, ids in seen.overlaps}
    rows = []
    is_disjoint = False
    for evaluation in (one for one in known if one.role == "evaluation"):
        trains = [one for one in known if one.role == "train" and one.root == evaluation.root]
        pairs = [shared.get((train.number, evaluation.number), (0, ())) for train in trains]
        if not pairs:
            continue
        number, ids = min(pairs) if min(pairs)[0] == 0 else max(pairs)
        is_disjoint |= number == 0
        train = trains[pairs.index((number, ids))]
        rows.append((number, ids, train, evaluation))
    if not rows:
        return None
    number, ids, train, evaluation = max(rows, key=lambda row: row[0])
    return SplitOverlap(
        train=f"the loader made at {train.where or 'an unknown place'}",
        evaluation=f"the loader made at {evaluation.where or 'an unknown place'}",
        num_shared=number,
        num_train=train.num_drawn,
        num_evaluation=evaluation.num_drawn,
        first_ids=ids,
        basis="drawn",
        has_disjoint=is_disjoint and number > 0,
        where=evaluation.where,
    )
