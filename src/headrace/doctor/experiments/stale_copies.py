"""Changes a data set between epochs, as a training loop does, and looks whether workers that stay notice.

workers walk ──▶ one process reads ──▶ change ──▶ one process reads: did it matter? ──▶ the same workers walk again
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.workers import StaleAttribute, StaleCopies
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject
from headrace.doctor.walks.changes import Change, find_changes
from headrace.doctor.walks.field_digests import Digests, digest_fields, is_same
from headrace.doctor.walks.journal import Event
from headrace.doctor.walks.loader_walk import LoaderWalk, patience
from headrace.doctor.walks.observer import name_index

__all__ = ["STEP", "ChangeBetweenEpochs"]

MAX_SAMPLES = 8
"""Samples that are looked at: an epoch that matters shows in nearly every one."""
MAX_CHANGES = 6
"""Each costs a walk through these samples."""
ARGUMENTS: tuple[Any, ...] = (1, 5, 0.5)
"""What is tried for a method that takes one argument: an epoch, a later one, a share."""

Samples = list[Digests]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBetweenEpochs:
    """The experiment; yields one StaleCopies, or nothing if workers and one process cannot be compared."""

    name: ClassVar[str] = "stale copies"
    starts_processes: ClassVar[bool] = True

    num_workers: int
    folder: str
    """For the journals. The parent's: it outlives this process, however that ends."""
    seed: int
    walk_s: float
    patience_s: float
    script: str | None
    """The user's file, whose loops say what is done between epochs."""
    rows: tuple[int, ...] = ()
    """Rows that are readable; empty: not known, the first ones are taken."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[StaleCopies]:
        """Tries each change."""
        torch_data = importlib.import_module("torch.utils.data")
        script = None if self.script is None else pathlib.Path(self.script)
        changes = find_changes(subject.dataset, script)[:MAX_CHANGES]
        if not changes or not isinstance(subject.loader, torch_data.DataLoader):
            yield StaleCopies(num_workers=self.num_workers, tried=())
            return
        tried = tuple(self._try_all(changes, subject, bench, pathlib.Path(self.folder)))
        yield StaleCopies(num_workers=self.num_workers, tried=tried)

    def _try_all(
        self, changes: Sequence[Change], subject: Subject, bench: Bench, folder: pathlib.Path
    ) -> Iterator[StaleAttribute]:
        rows = [*(self.rows or range(min(MAX_SAMPLES, subject.num_samples or 0)))][:MAX_SAMPLES]
        dealt: dict[str, Any] = {}
        if not subject.is_iterable:
            each = [[row] for row in rows]
            dealt = {"batch_sampler": each} if subject.joins_samples else {"sampler": rows}
        walk = LoaderWalk(
            subject.loader,
            bench,
            folder,
            num_workers=self.num_workers,
            persistent=True,
            is_batched=subject.joins_samples,
            reseed=self.seed,
            **dealt,
        )
        with walk:
            kept = self._walked(walk, subject.is_iterable)
            for change in changes:
                before, again = (self._read(subject, bench, rows) for _ in range(2))
                if kept is None or not before or not all(map(_is_equal, before, again)):
                    return  # it changes by itself: nothing could be told from a difference
                done, after = self._change(change, subject, bench, rows, before)
                if done is None:
                    continue
                place = next(
                    (place for place, pair in enumerate(zip(before, after, strict=False)) if not _is_equal(*pair)), None
                )
                reaches = None
                if place is not None:
                    now = self._walked(walk, subject.is_iterable)
                    reaches = None if now is None else not all(map(_is_equal, kept, now))
                    kept = now
                yield StaleAttribute(
                    change=done,
                    attributes=change.attributes,
                    at=change.at,
                    has_effect=place is not None,
                    reaches_workers=reaches,
                    is_between_epochs=change.is_between_epochs,
                    sample_id=None if place is None or subject.is_iterable else subject.sample_id(rows[place]),
                )

    def _walked(self, walk: LoaderWalk, is_iterable: bool) -> Samples | None:
        """The samples of the workers, in the order of workers and samples; None if one stopped."""
        limit = 2 * MAX_SAMPLES * self.num_workers if is_iterable else None
        found = walk.walk(patience_s=self.patience_s, max_s=self.walk_s, max_samples=limit)
        if found.outcome not in {"done", "limit"} or found.num_errors:
            return None
        ends = [_last_pass(events)[:MAX_SAMPLES] for events in found.journals]
        return [event["fields"] for event in itertools.chain.from_iterable(ends)]

    def _read(self, subject: Subject, bench: Bench, rows: Sequence[int]) -> Samples:
        """The same samples in this process, drawn under the seeds that workers take."""
        found: Samples = []
        stream = iter(subject.dataset) if subject.is_iterable else None
        for row in rows if stream is None else range(MAX_SAMPLES):
            with bench.holding(row, None if stream is not None else subject.sample_id(row), stage="sample"):
                bench.reseed(self.seed, name_index(row))
                try:
                    sample = subject.read(row) if stream is None else next(stream)
                except StopIteration:
                    break
                bench.stop_listening()
                found.append(digest_fields(sample))
        return found

    def _change(
        self, change: Change, subject: Subject, bench: Bench, rows: Sequence[int], before: Samples
    ) -> tuple[str | None, Samples]:
        """Does it, with the first argument that makes a difference; returns what was done, as code, and the samples."""
        done: str | None = None
        after = before
        for argument in self._arguments(change):
            try:
                with bench.holding(None, None, stage="change"):
                    if change.is_call:
                        getattr(change.holder, change.name)(*argument)
                        done = f"{change.path}.{change.name}({', '.join(map(repr, argument))})"
                    else:
                        setattr(change.holder, change.name, argument[0])
                        done = f"{change.path}.{change.name} = {argument[0]!r}"
                after = self._read(subject, bench, rows)
            except Exception:  # noqa: S112 - not an argument that it takes
                continue
            if len(after) != len(before) or not all(map(_is_equal, before, after)):
                break
        return done, after

    @staticmethod
    def _arguments(change: Change) -> list[tuple[Any, ...]]:
        if change.is_call:
            return [(argument,) for argument in ARGUMENTS] if change.takes_argument else [()]
        value = getattr(change.holder, change.name)
        if isinstance(value, bool):
            return [(not value,)]
        return [(value + 1,), (value + 5,), (value / 2,)]


def _is_equal(one: Digests, other: Digests) -> bool:
    return one.keys() == other.keys() and all(is_same(one[field], other[field]) for field in one)


def _last_pass(events: Sequence[Event]) -> list[Event]:
    """The samples of a worker's last pass: a stream that was left may have prepared more of the one before."""
    start = max((place for place, event in enumerate(events) if event["at"] == "pass"), default=0)
    return [event for event in events[start:] if event["at"] == "end"]


class _Step:
    """Only for loaders that keep their workers: fresh workers get a fresh copy in each epoch."""

    place = 500
    gives: tuple[type[Evidence], ...] = (StaleCopies,)
    every_split = False

    def run(self, round_: Round) -> None:
        """Asks in a child of its own."""
        facts, wishes = round_.facts, round_.wishes
        if not (facts.persistent_workers and facts.num_workers):
            round_.found.add(StaleCopies(num_workers=facts.num_workers, tried=()))
            return
        place = wishes.spec.rpartition(":")[0]
        walls = [one.read.wall_s for one in round_.prepared if one.read.outcome == "ok"]
        with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder:
            experiment = ChangeBetweenEpochs(
                folder=folder,
                num_workers=min(facts.num_workers, 2),
                seed=wishes.seed,
                walk_s=min(wishes.walk_s / 2, round_.left_s / 4),
                patience_s=patience(walls),
                script=place if place.endswith(".py") else None,
                rows=tuple(one.read.index for one in round_.prepared if one.read.outcome == "ok")[:MAX_SAMPLES],
            )
            round_.gather(experiment, StaleCopies, alone=True)


STEP = _Step()
