"""What the loaders of one TARGET, or of one script, share: samples, data set objects, numbers of classes."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal

from headrace.doctor.evidence.base import Evidence
from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces
from headrace.errors import SampleId

__all__ = [
    "ClassMap",
    "ClassMaps",
    "SharedDataSet",
    "SharedDataSets",
    "SharedSamples",
    "SplitOverlap",
    "split_overlap",
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharedSamples:
    """A training loader and an evaluation loader held against each other."""

    train: str
    """Name of the training loader: its name in TARGET, or `file:line` where the script made it."""
    evaluation: str
    """Name of the evaluation loader, likewise."""
    num_train: int
    """Different samples of the training loader that were compared."""
    num_evaluation: int
    """Different samples of the evaluation loader that were compared."""
    num_shared: int
    """Of the latter, those that the training loader delivers too; 0 = none."""
    first_ids: tuple[SampleId, ...] = ()
    """The first few that both deliver: rows of the data set under all wrappers, paths, or rows of the evaluation set."""
    by: Literal["row", "path", "content"] = "row"
    """How they were recognised: the same row of the same data set object, the same file, or equal content."""
    is_split_anew: bool = False
    """True if the script makes both loaders anew for each epoch, each time from other rows: what one epoch evaluates, an
    earlier one trained on."""
    may_be_meant: bool = False
    """True if nothing says that this loader holds samples out, and another one does: this one may measure the training
    score on purpose. Also for equal contents at equal rows of data sets that store no samples: made-up data."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitOverlap(Evidence):
    """Each evaluation loader against the training loader."""

    pairs: tuple[SharedSamples, ...]
    purpose: str | None = None
    """A word of the file that says that both are the same on purpose: overfit, debug, ...; None: there is none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClassMap:
    """Which number each class has in one split."""

    split: str
    said_by: str
    """Class and attribute that say it, e.g. `ImageFolder.class_to_idx`."""
    numbers: tuple[tuple[str, int], ...]
    """(name of the class, its number), by number."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClassMaps(Evidence):
    """The class maps of the splits that have one; splits that share one object are listed once."""

    maps: tuple[ClassMap, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharedDataSet:
    """One data set object under a training loader and an evaluation loader."""

    train: str
    evaluation: str
    dataset_kind: str
    num_read: int
    """Rows of the shared object that were prepared for this, each three times."""
    num_random: int
    """Of these, rows that differ when the global generators stand elsewhere and are equal when they stand alike."""
    assigned: tuple[str, ...] = ()
    """`file:line` of assignments that give each side a transform of its own through the shared object; the last one
    holds for both."""
    changes_later: str | None = None
    """`file:line` where the source changes such an attribute in a loop, so that the object is switched over on purpose;
    None: nowhere."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SharedDataSets(Evidence):
    """Every pair of a training and an evaluation loader that share a data set object; empty: none does."""

    shared: tuple[SharedDataSet, ...]


def split_overlap(seen: LoaderTraces) -> SplitOverlap | None:
    """Returns what the loaders of a running script say about it; None if there is no pair whose samples are known.

    An evaluation loader counts only if it meets every training loader over the same data: with several folds, the
    evaluation part of one is the training part of another, and each is disjoint from its own. That excuse does not hold
    for loaders that a script makes anew in each epoch of one training.
    """
    known = [one for one in seen.loaders if one.num_drawn and one.root is not None]
    shared = {(train, evaluation): (number, ids) for train, evaluation, number, ids in seen.overlaps}
    pairs, anew = _split_anew(seen, known, shared)
    for evaluation in (one for one in known if one.role == "evaluation" and one.number not in anew):
        trains = [one for one in known if one.role == "train" and one.root == evaluation.root]
        met = [(*shared.get((train.number, evaluation.number), (0, ())), train) for train in trains]
        if met:
            is_free = any(number == 0 for number, _, _ in met)
            number, ids, train = (min if is_free else max)(met, key=lambda one: one[0])
            pairs.append(_pair(train, evaluation, number, ids))
    holds_out = any(pair.num_shared == 0 for pair in pairs)
    marked = [
        dataclasses.replace(pair, may_be_meant=holds_out and pair.num_shared == pair.num_evaluation) for pair in pairs
    ]
    return SplitOverlap(pairs=tuple(marked)) if pairs else None


def _split_anew(
    seen: LoaderTraces, known: Sequence[LoaderTrace], shared: Mapping[tuple[int, int], tuple[int, Sequence[int]]]
) -> tuple[list[SharedSamples], set[int]]:
    """Returns (a pair for each two calls that make loaders anew from other rows in each epoch, numbers of these loaders).

    Each of them is walked once, and since the first one the weights come from steps alone: it is one training, no folds.
    """
    groups: dict[tuple[str, str | None, str | None], list[LoaderTrace]] = collections.defaultdict(list)
    for one in known:
        groups[one.role, one.where, one.root].append(one)
    pairs: list[SharedSamples] = []
    numbers: set[int] = set()
    for (role, where, root), evaluations in groups.items():
        if role != "evaluation" or where is None or not _are_epochs(evaluations, seen):
            continue
        for (other_role, place, other_root), trains in groups.items():
            if (other_role, other_root) != ("train", root) or place is None or not _are_epochs(trains, seen):
                continue
            met = [
                (*shared[train.number, evaluation.number], train, evaluation)
                for train in trains
                for evaluation in evaluations
                if (train.number, evaluation.number) in shared
                and train.passes[0].started_s < evaluation.passes[0].started_s
            ]
            if met:
                number, ids, train, evaluation = max(met, key=lambda one: one[0])
                pairs.append(dataclasses.replace(_pair(train, evaluation, number, ids), is_split_anew=True))
                numbers.update(one.number for one in evaluations)
    return pairs, numbers


def _are_epochs(loaders: Sequence[LoaderTrace], seen: LoaderTraces) -> bool:
    if len(loaders) < 2 or seen.weights_began_s is None or any(one.num_passes != 1 for one in loaders):
        return False
    return seen.weights_began_s < min(one.passes[0].started_s for one in loaders)


def _pair(train: LoaderTrace, evaluation: LoaderTrace, number: int, ids: Sequence[int]) -> SharedSamples:
    return SharedSamples(
        train=_called(train),
        evaluation=_called(evaluation),
        num_train=train.num_drawn,
        num_evaluation=evaluation.num_drawn,
        num_shared=number,
        first_ids=tuple(ids),
    )


def _called(loader: LoaderTrace) -> str:
    return f"the loader made at {loader.where}" if loader.where else f"loader {loader.number}"
