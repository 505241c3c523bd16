"""Holds the loaders of TARGET against each other: shared samples, shared data set objects, numbers of classes."""

from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.splits import (
    ClassMap,
    ClassMaps,
    SharedDataSet,
    SharedDataSets,
    SharedSamples,
    SplitOverlap,
)
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.digests import digest
from headrace.doctor.probes.order_draws import walk
from headrace.doctor.probes.sources import Source, read_source
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import attribute
from headrace.doctor.subject.roots import layers_of, root_rows
from headrace.errors import SampleId

__all__ = ["STEP", "CompareSplits"]

MAX_PATHS = 200_000
"""Rows whose paths are asked for in one split."""
MAX_CONTENTS = 400
"""Rows of one split that are prepared to compare contents: most double sets show in far fewer."""
MAX_REPEATED = 0.02
"""Share of equal rows within one split from which on equal rows in two splits are what such data are like."""
NUM_READ = 4
"""Rows of a shared data set that are prepared three times each."""
MAX_CLASSES = 100_000
NUM_NAMED = 5
_EVALUATION = re.compile(r"val|test|eval|dev|hold", re.IGNORECASE)
_NOT_HELD_OUT = re.compile(
    r"train|memory|bank|calib|gallery|query|support|index|stats|label|sup|semi|source|target|domain|aux|replay",
    re.IGNORECASE,
)
"""Names of loaders that are read beside the training loader for another end than to hold samples out."""
_TARGETS = re.compile(r"target|label|class|^y$|indices|weight|length", re.IGNORECASE)
_MAP_NAMES = ("class_to_idx", "class_to_index", "class2idx", "label2id", "label_to_idx", "label_to_id", "label_map")
_LIST_NAMES = ("classes", "class_names", "categories", "label_names")

Rows = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CompareSplits:
    """The experiment; yields SplitOverlap, ClassMaps and SharedDataSets. Walks samplers and reads a few samples."""

    name: ClassVar[str] = "splits"
    starts_processes: ClassVar[bool] = False

    source: Source
    walk_s: float
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[Evidence]:
        """The first loader against each that evaluates."""
        siblings = subject.siblings
        yield ClassMaps(maps=tuple(_class_maps(siblings)))
        evaluations = {
            name: one
            for place, (name, one) in enumerate(siblings.items())
            if one is not subject and _is_held_out(name) and not self._is_called_otherwise(place)
        }
        train = next(name for name, one in siblings.items() if one is subject)
        bench.reseed(self.seed, "splits")
        rows = {name: self._rows(one, bench) for name, one in {train: subject, **evaluations}.items()}
        yield SharedDataSets(shared=tuple(self._shared(subject, train, evaluations, bench)))
        pairs = [
            pair
            for name, one in evaluations.items()
            if (pair := self._overlap(train, name, subject, one, rows[train], rows[name], bench)) is not None
        ]
        yield SplitOverlap(pairs=tuple(pairs), purpose=self.source.purpose)

    def _is_called_otherwise(self, place: int) -> bool:
        """True if the source returns it under a name of another meaning: `return labelled, unlabelled`."""
        names = self.source.returned
        return place < len(names) and names[place].isidentifier() and _NOT_HELD_OUT.search(names[place]) is not None

    def _rows(self, subject: Subject, bench: Bench) -> Rows | None:
        """The different rows that a loader draws in one epoch; None: it has no rows, or their numbers are no numbers."""
        count = subject.num_samples
        if subject.is_iterable or not count:
            return None
        sampler = getattr(subject.loader, "batch_sampler", None)
        sampler = getattr(subject.loader, "sampler", None) if sampler is None else sampler
        drawn = None if sampler is None else walk(sampler, bench, self.walk_s / 4).rows()
        found = np.arange(count) if drawn is None or not len(drawn) else np.unique(drawn)
        return found[(found >= 0) & (found < count)]

    def _overlap(
        self,
        train: str,
        evaluation: str,
        one: Subject,
        other: Subject,
        rows: Rows | None,
        other_rows: Rows | None,
        bench: Bench,
    ) -> SharedSamples | None:
        """By rows of one object where the data sets meet in one, else by paths, else by contents."""
        if rows is None or other_rows is None or not len(rows) or not len(other_rows):
            return None
        names = (train, evaluation)
        ours, theirs = root_rows(one.dataset, rows), root_rows(other.dataset, other_rows)
        if {id(root) for root, _ in ours} & {id(root) for root, _ in theirs}:
            return _by_row(names, ours, theirs)
        paths, other_paths = _paths(one, rows), _paths(other, other_rows)
        if paths and other_paths:
            shared = [path for path in other_paths if path in paths]
            return _pair(names, len(paths), len(other_paths), len(shared), shared, "path")
        return self._by_content(names, one, other, rows, other_rows, bench)

    def _by_content(
        self, names: tuple[str, str], one: Subject, other: Subject, rows: Rows, other_rows: Rows, bench: Bench
    ) -> SharedSamples | None:
        """Digests of prepared samples; where contents repeat within a split, meetings of splits say nothing."""
        theirs = self._contents(other, other_rows, bench, MAX_CONTENTS)
        ours = self._contents(one, rows, bench, 10 * MAX_CONTENTS)
        if theirs is None or ours is None or len(theirs) < 2 or len(ours) < 2:
            return None
        shared = {row: ours[content] for content, row in theirs.items() if content in ours}
        # Samples that are computed from their row number are equal at equal rows, as made-up data are.
        is_computed = all(row == mine for row, mine in shared.items()) and not _stores_samples(other.dataset)
        pair = _pair(names, len(ours), len(theirs), len(shared), list(shared), "content")
        return dataclasses.replace(pair, may_be_meant=is_computed)

    def _contents(self, subject: Subject, rows: Rows, bench: Bench, most: int) -> dict[str, SampleId] | None:
        """Digest -> row, of evenly spread rows within the limits; None: too many rows are equal to another one."""
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))]
        end = time.monotonic() + self.walk_s / 4
        found: dict[str, SampleId] = {}
        num_repeated = 0
        for row in chosen.tolist():
            if time.monotonic() > end:
                break
            content = _digest_of(subject, row, bench, self.seed)
            if content is not None:
                num_repeated += content in found
                found[content] = row
        return None if num_repeated > MAX_REPEATED * len(found) else found

    def _shared(
        self, subject: Subject, train: str, evaluations: Mapping[str, Subject], bench: Bench
    ) -> Iterator[SharedDataSet]:
        """Data set objects that hold samples for both sides, with how random their reads are."""
        ours = {id(layer) for layer in layers_of(subject.dataset)}
        for name, other in evaluations.items():
            shared = next((layer for layer in layers_of(other.dataset) if id(layer) in ours), None)
            if shared is None or other.is_iterable or not hasattr(shared, "__len__"):
                continue
            rows = sorted({int(row) for row in np.linspace(0, len(shared) - 1, NUM_READ)} if len(shared) else set())
            reads = [self._is_random(shared, row, bench) for row in rows]
            yield SharedDataSet(
                train=train,
                evaluation=name,
                dataset_kind=type(shared).__name__,
                num_read=len(reads),
                num_random=sum(reads),
                assigned=self.source.shared_slots,
                changes_later=self.source.switches_at,
            )

    def _is_random(self, dataset: Any, row: int, bench: Bench) -> bool:
        """Equal from the same random state, different from another: it draws random numbers while it is read."""
        contents = []
        for state in (0, 0, 1):
            with bench.holding(row, row):
                bench.reseed(self.seed, "splits", row, state)
                try:
                    contents.append(digest(dataset[row]))
                except Exception:  # the reads probe tells of rows that cannot be read
                    return False
        return contents[0] is not None and contents[0] == contents[1] != contents[2]


def _is_held_out(name: str) -> bool:
    """False for a second loader over training data by its name, and for one whose purpose is not said."""
    return _NOT_HELD_OUT.search(name) is None and _EVALUATION.search(name) is not None


def _by_row(
    names: tuple[str, str], ours: Sequence[tuple[Any, Rows]], theirs: Sequence[tuple[Any, Rows]]
) -> SharedSamples:
    shared: list[SampleId] = []
    count = 0
    for root, rows in theirs:
        mine = [other for one, other in ours if one is root]
        both = np.intersect1d(np.unique(rows), np.concatenate(mine)) if mine else np.zeros(0, np.int64)
        count += len(both)
        shared += both[:NUM_NAMED].tolist()
    size = sum(len(np.unique(rows)) for _, rows in theirs)
    return _pair(names, sum(len(np.unique(rows)) for _, rows in ours), size, count, shared, "row")


def _pair(
    names: tuple[str, str], num_train: int, num_evaluation: int, num_shared: int, shared: Sequence[SampleId], by: Any
) -> SharedSamples:
    return SharedSamples(
        train=names[0],
        evaluation=names[1],
        num_train=num_train,
        num_evaluation=num_evaluation,
        num_shared=num_shared,
        first_ids=tuple(shared[:NUM_NAMED]),
        by=by,
    )


def _paths(subject: Subject, rows: Rows) -> dict[str, None]:
    """The files of the rows, in order; empty if the data set does not say them, or if rows share files."""
    if len(rows) > MAX_PATHS:
        return {}
    found = [_located(subject, int(row)) for row in rows[:2]]
    if None in found:
        return {}
    places = [_located(subject, int(row)) for row in rows]
    paths = dict.fromkeys(os.path.realpath(place) for place in places if place is not None)
    return paths if len(paths) == len(rows) else {}


def _located(subject: Subject, row: int) -> str | None:
    """The path of a row: followed through subsets to the data set that knows it."""
    ((root, rows), *_) = root_rows(subject.dataset, np.asarray([row]))
    place = subject.locate(row) if root is subject.dataset else Subject(root).locate(int(rows[0]))
    return place if place and os.sep in place else None


def _stores_samples(dataset: Any) -> bool:
    """True if a data set keeps something for each row, its targets apart."""
    for layer in layers_of(dataset):
        if isinstance(getattr(layer, "tensors", None), tuple) or isinstance(layer, (list, tuple)):
            return True
        held = {name: value for name, value in getattr(layer, "__dict__", {}).items() if not _TARGETS.search(name)}
        count = len(layer) if hasattr(layer, "__len__") else 0
        if any(_is_column(value) and len(value) == count for value in held.values()):
            return True
    return False


def _is_column(value: Any) -> bool:
    is_array = hasattr(value, "shape") and hasattr(value, "dtype") and len(value.shape) > 0
    return is_array or isinstance(value, (list, tuple))


def _digest_of(subject: Subject, row: int, bench: Bench, seed: int) -> str | None:
    with bench.holding(row, subject.sample_id(row)):
        bench.reseed(seed, "splits")  # the same state for every row, so that augmentations agree where samples do
        try:
            return digest(subject.read(row))
        except Exception:  # the reads probe tells of rows that cannot be read
            return None


def _class_maps(siblings: Mapping[str, Subject]) -> Iterator[ClassMap]:
    seen: set[int] = set()
    for name, subject in siblings.items():
        for dataset in layers_of(subject.dataset):
            found = _map_of(dataset) or _map_of_part(dataset)
            if found is None:
                continue
            if id(dataset) not in seen:
                seen.add(id(dataset))
                attribute, numbers = found
                ordered = tuple(sorted(numbers.items(), key=lambda item: item[1]))
                yield ClassMap(split=name, said_by=f"{type(dataset).__name__}.{attribute}", numbers=ordered)
            break


def _map_of_part(dataset: Any) -> tuple[str, dict[str, int]] | None:
    """As `_map_of`, of the one object in a data set that says a map: timm's `reader`, a parser, an index of files."""
    parts = vars(dataset) if hasattr(dataset, "__dict__") else {}
    found = [
        (f"{place}.{said[0]}", said[1])
        for place, part in parts.items()
        if hasattr(part, "__dict__") and (said := _map_of(part, _MAP_NAMES)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _map_of(holder: Any, names: Iterable[str] = (*_MAP_NAMES, *_LIST_NAMES)) -> tuple[str, dict[str, int]] | None:
    """(attribute, class -> number) of a data set; None: it says none."""
    for name in names:
        value = attribute(holder, name)
        if name in _MAP_NAMES and isinstance(value, Mapping) and 1 < len(value) <= MAX_CLASSES:
            if all(isinstance(number, (int, np.integer)) for number in value.values()):
                return name, {str(key): int(number) for key, number in value.items()}
        elif (
            name in _LIST_NAMES
            and isinstance(value, (list, tuple))
            and len(value) > 1
            and all(isinstance(one, str) for one in value)
        ):
            return name, {one: number for number, one in enumerate(value)}
    return None


class _Step:
    place = 310
    gives = (SplitOverlap, ClassMaps, SharedDataSets)
    every_split = False

    def run(self, round_: Round) -> None:
        if len(round_.introduction.splits) < 2:
            round_.found.lacks(self.gives, "TARGET is one loader; give several, as (train, val), to compare them")
            return
        source = read_source(round_.wishes.spec)
        experiment = CompareSplits(source=source, walk_s=round_.wishes.walk_s, seed=round_.wishes.seed)
        round_.say("comparing the loaders")
        records, ending = round_.ask(experiment)
        round_.found.note(experiment.name, ending, ", ".join(round_.introduction.splits))
        for record in records:
            round_.found.add(record)
        lacking = [kind for kind in self.gives if kind not in round_.found.evidence]
        round_.found.lacks(lacking, f"the loaders could not be compared: {told(ending)}")


STEP = _Step()
