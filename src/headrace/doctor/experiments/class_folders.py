"""Asks which classes the data set counts, and what lies under their names."""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence, SampleRead, SampleReads
from headrace.doctor.evidence.source import ClassFolder, ClassFolders
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject

__all__ = ["STEP", "AskClasses", "follow_sorted"]

USUAL = ("class_to_idx", "classes")
"""What torchvision, and those who follow it, call the list of classes."""
MAX_CLASSES = 5_000
MAX_ATTRIBUTES = 200
MAX_COUNTED = 1_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskClasses:
    """The experiment; yields one ClassFolders."""

    name: ClassVar[str] = "class folders"
    starts_processes: ClassVar[bool] = False

    labelled: tuple[tuple[str, int | None], ...]
    """(file, label) of examined samples; None: no label that is a single number."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[ClassFolders]:
        """Looks at attributes and folders; loads nothing."""
        with bench.holding(None, None, stage="facts"):
            yield self._ask(subject)

    def _ask(self, subject: Subject) -> ClassFolders:
        root = _root(path for path, _ in self.labelled)
        listing = sorted(entry.name for entry in pathlib.Path(root).iterdir()) if root is not None else []
        seen = {pathlib.Path(path).parent.name for path, _ in self.labelled}
        suffixes = {pathlib.Path(path).suffix for path, _ in self.labelled}
        for holder, name, names in _lists_of_names(subject):
            if name not in USUAL and len(names) >= (subject.num_samples or 0):
                continue  # names of samples
            is_listed = root is not None and seen <= set(names) and set(names) <= set(listing)
            if is_listed or name in USUAL:
                said_by = f"{type(holder).__name__}.{name}"
                return ClassFolders(
                    root=root, said_by=said_by, classes=_classes(root if is_listed else None, names, suffixes)
                )
        followed = follow_sorted(self.labelled, listing, root)
        return ClassFolders(root=root, said_by=None, classes=_classes(root, followed, suffixes))


def _root(paths: Iterator[str]) -> str | None:
    """The folder two above most files: where class folders lie, if these are class folders."""
    counts = collections.Counter(str(pathlib.Path(path).parent.parent) for path in paths)
    return counts.most_common(1)[0][0] if counts and pathlib.Path(counts.most_common(1)[0][0]).is_dir() else None


def _lists_of_names(subject: Subject) -> Iterator[tuple[Any, str, Sequence[str]]]:
    """Lists of names that the data set, or one inside it, keeps; those with the usual names first."""
    for holder in subject.layers():
        attributes = list(vars(holder).items()) if hasattr(holder, "__dict__") else []
        usual = [(name, getattr(holder, name, None)) for name in USUAL]
        for name, value in [*usual, *attributes[:MAX_ATTRIBUTES]]:
            names = _names(value)
            if names is not None:
                yield holder, name, names


def _names(value: Any) -> Sequence[str] | None:
    """Names by class number, of a list or of a mapping from names to numbers."""
    if not isinstance(value, (list, tuple, Mapping)) or not 1 < len(value) <= MAX_CLASSES:
        return None
    if not all(isinstance(name, str) for name in value):
        return None
    if not isinstance(value, Mapping):
        return list(value)
    if not all(isinstance(number, int) for number in value.values()):
        return None
    return sorted(value, key=lambda name: value[name])


def follow_sorted(
    labelled: Sequence[tuple[str, int | None]], listing: Sequence[str], root: str | None
) -> Sequence[str]:
    """Returns the entries of the root by class number, if the labels follow the sorted listing; else nothing.

    Folders alone are tried first. A listing that holds no more than the folders of samples tells nothing.
    """
    pairs = {(pathlib.Path(path).parent.name, label) for path, label in labelled if label is not None}
    if root is None or len(pairs) < 2 or len({name for name, _ in pairs}) != len(pairs):
        return []
    folders = [name for name in listing if (pathlib.Path(root) / name).is_dir()]
    for names in (folders, listing):
        numbers = {name: number for number, name in enumerate(names)}
        visible = {
            name: number for number, name in enumerate(name for name in names if not name.startswith((".", "__")))
        }
        if all(numbers.get(name) == label for name, label in pairs):
            # Labels that the visible names explain as well say nothing of the others.
            return [] if visible != numbers and all(visible.get(name) == label for name, label in pairs) else names
    return []


def _classes(root: str | None, names: Sequence[str], suffixes: set[str]) -> tuple[ClassFolder, ...]:
    return tuple(
        ClassFolder(name=name, number=number, kind=_kind(root, name), num_files=_count(root, name, suffixes))
        for number, name in enumerate(names)
    )


def _kind(root: str | None, name: str) -> str:
    if root is None or not (pathlib.Path(root) / name).exists():
        return "nothing"
    return "folder" if (pathlib.Path(root) / name).is_dir() else "file"


def _count(root: str | None, name: str, suffixes: set[str]) -> int:
    if root is None:
        return 0
    number = 0
    for _, _, files in os.walk(pathlib.Path(root) / name):
        number += sum(pathlib.PurePath(file).suffix in suffixes for file in files)
        if number >= MAX_COUNTED:
            return MAX_COUNTED
    return number


class _Step:
    """Its place in a diagnosis."""

    place: ClassVar[int] = 200
    gives: ClassVar[tuple[type[Evidence], ...]] = (ClassFolders,)
    every_split: ClassVar[bool] = True

    def run(self, round_: Round) -> None:
        """Asks in the child in which the samples were prepared."""
        seen = round_.found.evidence.get(SampleReads)
        targets = seen.target_fields if isinstance(seen, SampleReads) else ()
        labelled = tuple(
            (one.read.path, _label(one.read, targets)) for one in round_.prepared if one.read.path is not None
        )
        round_.gather(AskClasses(labelled=labelled), ClassFolders)


STEP = _Step()


def _label(read: SampleRead, targets: Sequence[str]) -> int | None:
    for view in read.fields:
        is_single = view.minimum is not None and view.minimum == view.maximum and view.is_whole
        if view.field in targets and is_single and view.minimum is not None:
            return int(view.minimum)
    return None
