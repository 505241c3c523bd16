"""Compares what each worker of a loader over an iterable data set yields with what one process yields.

Samples of a stream have no ids; they are told apart by digests of their content.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from headrace.doctor.evidence import WorkerStreams
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.digests import digest as digest_of
from headrace.doctor.subject import Subject
from headrace.doctor.subject.walking import end_pass, key_in
from headrace.errors import SampleId

__all__ = ["CompareStreams", "compare"]

MAX_S = 8.0
"""Seconds for each of the two walks, the first sample not counted: enough for thousands of samples of most streams."""

Tagged = tuple[int, str | None, SampleId | None]
"""(worker, digest of one sample, the key that it carries); None: its content has no digest; it carries none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CompareStreams:
    """The experiment; yields one WorkerStreams. Starts workers, as the loader does."""

    name: ClassVar[str] = "streams"
    starts_processes: ClassVar[bool] = True

    num_workers: int
    limit: int
    """Samples at most in each walk."""
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[WorkerStreams]:
        """Walks once in one process, then with workers, which end before the result is told."""
        single, single_ended = self._walk(subject, bench, 0)
        tagged, tagged_ended = self._walk(subject, bench, self.num_workers)
        yield compare(
            [digest for _, digest, _ in single],
            tagged,
            num_workers=self.num_workers,
            is_complete=single_ended and tagged_ended,
        )

    def _walk(self, subject: Subject, bench: Bench, num_workers: int) -> tuple[list[Tagged], bool]:
        """Returns the tagged samples, and whether the stream ended within the limits."""
        bench.reseed(self.seed, "streams")
        stage = f"stream of {num_workers} workers" if num_workers else "stream"
        stream, tagged, deadline = subject.stream(num_workers, _tag), list[Tagged](), None
        try:
            while len(tagged) < self.limit and (deadline is None or time.monotonic() < deadline):
                with bench.holding(len(tagged), None, stage=stage):
                    bench.stop_listening()
                    try:
                        tagged.append(next(stream))
                    except StopIteration:
                        return tagged, True
                deadline = deadline or time.monotonic() + MAX_S
        finally:
            end_pass(stream)  # torch does it when the iterator is collected; here it must not wait for that
        return tagged, False


def _tag(sample: Any) -> Tagged:
    """Runs in the worker, in the place of collate: the sample itself stays there."""
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    return (0 if info is None else info.id), digest_of(sample), key_in(sample)


def compare(
    single: Sequence[str | None], tagged: Sequence[Tagged], *, num_workers: int, is_complete: bool
) -> WorkerStreams:
    """Counts the samples that workers yield more often than one process does.

    If the streams ended, counts are exact: what several workers yield, beyond its number in one process. If only
    beginnings were seen, a content that simply occurs often would look like a repeat; then only a sample counts that
    is unique within its worker and stands at the same place in another one.
    """
    streams: list[list[str | None]] = [[] for _ in range(num_workers)]
    keys: dict[str | None, SampleId] = {}
    for worker, digest, key in tagged:
        streams[worker].append(digest)
        if key is not None:
            keys.setdefault(digest, key)
    duplicates = _beyond_single(single, streams) if is_complete else _at_same_place(streams)
    first = next(iter(duplicates), None)
    return WorkerStreams(
        num_workers=num_workers,
        per_worker=tuple(map(len, streams)),
        num_single=len(single),
        num_duplicated=sum(duplicates.values()),
        first_duplicate=None if first is None else f"{keys.get(first, first)}: {_places(first, streams)}",
        is_complete=is_complete,
    )


def _beyond_single(single: Sequence[str | None], streams: Sequence[Sequence[str | None]]) -> dict[str, int]:
    """Digest -> how many times more often the workers yield it, for digests that several workers yield."""
    once = collections.Counter(single)
    counts = [collections.Counter(stream) for stream in streams]
    total: collections.Counter[str | None] = sum(counts, collections.Counter())
    return {
        digest: count - once[digest]
        for digest, count in total.items()
        if digest is not None and count > once[digest] and sum(digest in counted for counted in counts) > 1
    }


def _at_same_place(streams: Sequence[Sequence[str | None]]) -> dict[str, int]:
    """Digest -> how many workers too many yield it, for digests that are unique in each worker and stand at one place."""
    counts = [collections.Counter(stream) for stream in streams]
    found: dict[str, int] = {}
    for place in range(max(map(len, streams), default=0)):
        here = collections.Counter(
            stream[place]
            for stream, counted in zip(streams, counts, strict=True)
            if place < len(stream) and counted[stream[place]] == 1
        )
        found |= {digest: count - 1 for digest, count in here.items() if digest is not None and count > 1}
    return found


def _places(digest: str, streams: Sequence[Sequence[str | None]]) -> str:
    named = []
    for worker, stream in enumerate(streams):
        with contextlib.suppress(ValueError):
            named.append(f"sample {stream.index(digest)} of worker {worker}")
    return " and ".join(named)
