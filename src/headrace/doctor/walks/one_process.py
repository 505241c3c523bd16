"""What one process makes of the samples that workers had: each read twice, failures looked for again, streams walked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from headrace.doctor.evidence.workers import WorkerEnd, WorkerError
from headrace.doctor.lab.bench import Bench
from headrace.doctor.subject import Subject
from headrace.doctor.walks.comparison import Index
from headrace.doctor.walks.field_digests import Digests, digest_fields, whole_digest
from headrace.errors import SampleId

__all__ = ["InOneProcess", "OneProcess", "read_stream"]

MAX_DRAWS = 200
"""Readings of a random sample in search of a draw that fails."""
OFTEN = 3
"""Errors of random samples from which on chance is no explanation for none in one process."""

InOneProcess = Literal["same", "fine", "unknown"]


class Limits(Protocol):
    """What it needs to know of the walk."""

    @property
    def seed(self) -> int:
        """Of the walk."""

    @property
    def walk_s(self) -> float:
        """Seconds for each walk."""

    @property
    def max_samples(self) -> int:
        """Different samples."""

    @property
    def num_workers(self) -> int:
        """Workers that were started."""


class OneProcess:
    """Samples of a data set with row numbers, read in this process."""

    def __init__(
        self,
        limits: Limits,
        subject: Subject,
        bench: Bench,
        indices: Mapping[Index, Any],
        collate: Callable[[Any], Any] | None,
        sample_id: Callable[[Index], SampleId],
    ) -> None:
        """Reads nothing yet.

        Args:
            limits: Seed and seconds.
            subject: Whose samples.
            bench: Where they are held.
            indices: The data set's own indices by the names that journals give them.
            collate: The loader's own collate function, to try it; None: it is not tried.
            sample_id: The id of a named sample.
        """
        self._limits, self._subject, self._bench = limits, subject, bench
        self._indices, self._collate, self._sample_id = indices, collate, sample_id
        self._reads: dict[Index, list[Digests]] = {}
        self._failed: set[Index] = set()

    def read_twice(self, names: Sequence[Index]) -> Mapping[Index, list[Digests]]:
        """Each sample under two seeds, in order, until time is up; those that fail are left out."""
        deadline = time.monotonic() + self._limits.walk_s / 2
        for name in dict.fromkeys(names):
            if self._reads and time.monotonic() > deadline:
                break
            try:
                self._reads[name] = [self._read(name, seed) for seed in (1, 2)]
            except Exception:
                self._failed.add(name)
        return self._reads

    def judge(self, one: WorkerEnd | WorkerError, names: Sequence[Index]) -> InOneProcess:
        """Does what happened to these samples in a worker happen here, too?"""
        if any(name in self._failed for name in names):
            return "same"
        if not names or any(name not in self._reads for name in names):
            return "fine" if one.stage == "worker_init_fn" else "unknown"
        if one.stage == "collate" and self._collate is not None and self._fails_to_join(names, self._collate):
            return "same"
        if one.stage == "sample" and any(self._reads[name][0] != self._reads[name][1] for name in names):
            return self._judge_by_chance(one, names)
        return "fine"

    def _read(self, name: Index, seed: int) -> Digests:
        row = name if isinstance(name, int) else None
        with self._bench.holding(row, self._sample_id(name)):
            self._bench.reseed(self._limits.seed, seed, name)
            sample = self._subject.read(self._indices[name], self._bench.enter)
            self._bench.stop_listening()
            return digest_fields(sample)

    def _fails_to_join(self, names: Sequence[Index], collate: Callable[[Any], Any]) -> bool:
        with self._bench.holding(None, None, stage="collate"):
            try:
                samples = [self._subject.read(self._indices[name]) for name in names]
                collate(samples if self._subject.joins_samples else samples[0])
            except Exception:
                return True
        return False

    def _judge_by_chance(self, one: WorkerEnd | WorkerError, names: Sequence[Index]) -> InOneProcess:
        """Of samples with random steps: the draw that failed may not have come up in this process yet."""
        deadline = time.monotonic() + self._limits.walk_s / 4
        for seed in range(3, MAX_DRAWS):
            if time.monotonic() > deadline:
                break
            try:
                self._read(names[seed % len(names)], seed)
            except Exception:
                return "same"
        is_often = isinstance(one, WorkerError) and one.num_errors >= OFTEN
        return "fine" if is_often else "unknown"


def read_stream(
    limits: Limits, subject: Subject, bench: Bench, seed: int
) -> tuple[list[str | None] | None, BaseException | None]:
    """Returns digests of all samples of a stream in this process, and what it raised; None if it did not end in time."""
    bench.reseed(limits.seed, seed, "stream")
    digests: list[str | None] = []
    limit = limits.max_samples * limits.num_workers
    deadline = time.monotonic() + limits.walk_s / 2
    stream = iter(subject.dataset)
    while len(digests) < limit and time.monotonic() < deadline:
        with bench.holding(len(digests), None, stage="stream"):
            try:
                sample = next(stream)
            except StopIteration:
                return digests, None
            except Exception as error:
                return None, error
            bench.stop_listening()
            digests.append(whole_digest(digest_fields(sample)))
    return None, None
