"""What a target says of itself before it is measured, and which files its samples are read from."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator
from typing import ClassVar

from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.reads import choose_indices
from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import attribute

__all__ = ["LookAtTarget", "TargetFacts"]

MOST_LOCATED = 20_000
MOST_S = 1.0
"""Seconds for asking where samples lie, and again for reading some to see what they open."""
NUM_READ = 8
MOST_SIBLINGS = 20_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What the target says of itself."""

    kind: str
    num_samples: int | None
    batch_size: int | None
    num_batches: int | None
    num_workers: int
    is_persistent: bool | None
    is_iterable: bool
    fixed_workers: str | None
    """Why its number of workers cannot be changed; None: it can."""
    paths: tuple[str, ...]
    """Files that samples are read from, all or evenly spread ones; empty: not known, or none."""
    decodes: bool | None
    """True: images were seen being opened; None: nothing was read, or nothing heard."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LookAtTarget:
    """The experiment; yields one TargetFacts."""

    name: ClassVar[str] = "looking at the target"
    starts_processes: ClassVar[bool] = False

    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[TargetFacts]:
        """Reads a handful of samples where the data set does not say where they lie."""
        persistent = attribute(subject.loader, "persistent_workers") if subject.loader is not None else None
        paths, decodes = self._paths(subject, bench)
        yield TargetFacts(
            kind=subject.kind,
            num_samples=subject.num_samples,
            batch_size=subject.batch_size,
            num_batches=subject.num_batches,
            num_workers=subject.num_workers,
            is_persistent=persistent if isinstance(persistent, bool) and subject.num_workers else None,
            is_iterable=subject.is_iterable,
            fixed_workers=subject.cannot.get("workers"),
            paths=paths,
            decodes=decodes,
        )

    def _paths(self, subject: Subject, bench: Bench) -> tuple[tuple[str, ...], bool | None]:
        number = subject.num_samples
        if subject.is_iterable or not number:
            return (), None
        told, deadline = dict[str, None](), time.monotonic() + MOST_S
        step = max(1, number // MOST_LOCATED)
        for index in range(0, number, step):
            place = None
            with contextlib.suppress(Exception):  # only the user's own code could fail here
                place = subject.locate(index)
            path = _file_of(place)
            if path is None or time.monotonic() > deadline:
                break
            told[path] = None
        opened, decodes = self._opened(subject, bench, number)
        if not told:
            told = dict.fromkeys([*opened, *_siblings(opened)])
        return tuple(told), decodes

    def _opened(self, subject: Subject, bench: Bench, number: int) -> tuple[list[str], bool | None]:
        """Files that some samples open, and whether images were decoded."""
        opened, has_images, num_read = dict[str, None](), False, 0
        deadline = time.monotonic() + MOST_S
        for index in choose_indices(number, NUM_READ, self.seed):
            with contextlib.suppress(Exception), bench.holding(index, subject.sample_id(index)):
                subject.read(index)
                num_read += 1
            opened.update(dict.fromkeys(bench.opened))
            has_images |= bool(bench.images)
            if time.monotonic() > deadline:
                break
        return list(opened), True if has_images else None


def _file_of(place: str | None) -> str | None:
    if place is None:
        return None
    for path in (place, place.partition("#")[0]):
        with contextlib.suppress(OSError, ValueError):
            if pathlib.Path(path).is_file():
                return path
    return None


def _siblings(opened: list[str]) -> Iterator[str]:
    """Files of the same folders and endings: where some samples lie, the others do."""
    num = 0
    for folder, ending in dict.fromkeys((pathlib.Path(path).parent, pathlib.Path(path).suffix) for path in opened):
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                if path.suffix == ending and num < MOST_SIBLINGS:
                    num += 1
                    yield str(path)
