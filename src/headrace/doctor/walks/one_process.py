"""What one process makes of the samples that workers had: each read twice, failures looked for again, streams walked."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from headrace.doctor.evidence.workers import WorkerEnd, WorkerError
from headrace.doctor.lab.bench import Bench
from headrace.doctor.stacks import innermost_at
from headrace.doctor.subject import Subject
from headrace.doctor.walks.comparison import Index
from headrace.doctor.walks.field_digests import Digests, digest_fields, whole_digest
from headrace.errors import SampleId

__all__ = ["OneProcess", "read_stream"]

MAX_DRAWS = 200
"""Readings of a random sample in search of a draw that fails."""
OFTEN = 3
"""Errors of random samples from which on chance is no explanation for none in one process."""
SELDOM = 5
"""Fewer errors than this prove nothing where workers share nothing that is open: if one process read as many samples, and
an error strikes any reading, all of five fall to the workers once in 32 times."""

Kind = tuple[str, str | None]
"""Type and place of an error."""

RECOVERIES = 8
"""Readings in which a sample that failed by chance comes out again."""

InOneProcess = Literal["same", "fine", "by chance"]
Proven = Literal["same", "fine", "unknown"]


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
        *,
        shares_nothing: bool,
    ) -> None:
        """Reads nothing yet.

        Args:
            limits: Seed and seconds.
            subject: Whose samples.
            bench: Where they are held.
            indices: The data set's own indices by the names that journals give them.
            collate: The loader's own collate function, to try it; None: it is not tried.
            sample_id: The id of a named sample.
            shares_nothing: True if workers are copies of this process that share no open file or the like: then they have
                no means to disturb each other, and lack nothing.
        """
        self._shares_nothing = shares_nothing
        self._limits, self._subject, self._bench = limits, subject, bench
        self._indices, self._collate, self._sample_id = indices, collate, sample_id
        self._reads: dict[Index, list[Digests]] = {}
        self._failed: set[Index] = set()
        self._drawn: set[Kind] = set()
        """Errors that came again under the seed that they had come under."""
        self._errors: collections.Counter[Kind] = collections.Counter()
        """Of samples that came out in the other reading, by type and place: what strikes any sample, by chance."""
        self._num_read = 0

    def read_twice(self, names: Sequence[Index]) -> Mapping[Index, list[Digests]]:
        """Each sample under two seeds, in order, until time is up; those that fail are left out."""
        deadline = time.monotonic() + self._limits.walk_s / 2
        for name in dict.fromkeys(names):
            if self._reads and time.monotonic() > deadline:
                break
            digests, failed = list[Digests](), list[tuple[int, Kind]]()
            for seed in (1, 2):
                try:
                    digests.append(self._read(name, seed))
                except Exception as error:
                    failed.append((seed, _kind(error)))
            if not failed:
                self._reads[name] = digests
                continue
            self._failed.add(name)
            if digests:
                ((seed, kind),) = failed
                if self._comes_out_again(name, seed, kind):
                    self._errors[kind] += 1
        return self._reads

    def judge_end(self, one: WorkerEnd, names: Sequence[Index]) -> Proven:
        """Does what ended a worker with these samples in hand happen here, too?"""
        known = self._judge_reads(one, names)
        if known is None and one.stage == "sample" and self._is_random(names):
            return "same" if self._search(names, None)[1] != "fine" else "unknown"
        return known or "fine"

    def judge_error(self, one: WorkerError, names: Sequence[Index]) -> WorkerError:
        """The error, with what one process makes of the samples in whose preparation it was raised."""
        kind = (one.error_type, one.at)
        if one.stage == "sample" and self._errors[kind]:
            return self._by_chance(one, self._num_read, self._errors[kind])
        known = self._judge_reads(one, names)
        if known is not None or one.stage != "sample":
            return dataclasses.replace(one, in_one_process=known or "fine")
        num_read, found = self._search(names, kind)
        if found == "by chance":
            return self._by_chance(one, num_read, 1)
        if found == "same":
            return dataclasses.replace(one, in_one_process="same", num_single=num_read)
        if self._is_random(names) and one.num_errors < OFTEN:
            return dataclasses.replace(one, in_one_process="unknown")
        if self._shares_nothing and one.num_came_out and one.num_errors < SELDOM:
            return self._by_chance(one, num_read, 0)
        return dataclasses.replace(one, in_one_process="fine", num_single=num_read)

    def _judge_reads(self, one: WorkerEnd | WorkerError, names: Sequence[Index]) -> Proven | None:
        """What the two readings say of it; None: the samples came out in both."""
        if any(name in self._failed for name in names):
            return "same"
        if not names or any(name not in self._reads for name in names):
            return "fine" if one.stage == "worker_init_fn" else "unknown"
        if one.stage == "collate" and self._collate is not None and self._fails_to_join(names, self._collate):
            return "same"
        return None

    def _is_random(self, names: Sequence[Index]) -> bool:
        return any(self._reads[name][0] != self._reads[name][1] for name in names)

    def _read(self, name: Index, seed: int) -> Digests:
        self._num_read += 1
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

    def _search(self, names: Sequence[Index], kind: Kind | None) -> tuple[int, InOneProcess]:
        """Reads them until one fails, for a while: what failed in a worker may not have come up in this process yet.

        Returns:
            Readings; whether one of them failed with an error of this type and place (None: with any), and came out again.
        """
        deadline, num_read = time.monotonic() + self._limits.walk_s / 4, 0
        for seed in range(3, MAX_DRAWS):
            if time.monotonic() > deadline:
                break
            num_read += 1
            try:
                self._read(names[seed % len(names)], seed)
            except Exception as error:
                if kind is None or _kind(error) == kind:
                    is_well = self._comes_out_again(names[seed % len(names)], seed, _kind(error))
                    return num_read, "by chance" if is_well else "same"
        return num_read, "fine"

    def _comes_out_again(self, name: Index, seed: int, kind: Kind) -> bool:
        """Whether a sample that came out and then failed under a seed is well again; notes whether the seed fails again.

        What fails from then on, because files, memory or a quota are used up, does not fail by chance.
        """
        for number in range(-1, RECOVERIES):
            try:
                self._read(name, seed if number < 0 else MAX_DRAWS + number)
            except Exception as error:
                if number < 0 and _kind(error) == kind:
                    self._drawn.add(kind)
            else:
                return True
        return False

    def _by_chance(self, one: WorkerError, num_read: int, num_failed: int) -> WorkerError:
        return dataclasses.replace(
            one,
            in_one_process="by chance",
            num_single=num_read,
            num_single_failed=num_failed,
            is_drawn=(one.error_type, one.at) in self._drawn,
        )


def _kind(error: BaseException) -> Kind:
    return type(error).__name__, innermost_at(error)


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
