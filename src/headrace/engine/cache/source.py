"""CachedSource: a source and its first stages, seen as a source of finished samples that are made once and then kept.

To the rest of the engine it is one more source, so the cache knows nothing of orders, batches or workers. A kept
sample is returned as a copy of its own: what later stages do to it in place does not come back.
"""

from __future__ import annotations

import operator
import os
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from headrace.engine.cache.content import FileStamps, file_stamp, file_stamps, record_stamp
from headrace.engine.cache.disk import DiskStore, default_folder
from headrace.engine.cache.entry import MISS, encode
from headrace.engine.cache.gather import join, join_alike
from headrace.engine.cache.memory import MemoryStore
from headrace.engine.cache.packing import Unpackable, pack
from headrace.engine.cache.stage_hash import Unhashable, stages_digest
from headrace.engine.source.gathering import NotGathered
from headrace.engine.transform import global_generators as generators
from headrace.engine.transform.stage import Stage
from headrace.errors import ConfigurationError, SampleId, Where, nearest
from headrace.protocols import Source

__all__ = ["CachedSource"]

_DELEGATED = frozenset({"classes", "num_classes", "class_to_idx", "index_of"})
"""What some sources have beyond the protocol; there if the inner source has it."""


class Store(Protocol):
    """Where entries lie."""

    max_bytes: int

    def get(self, row: int, sample_id: SampleId, stamp: bytes) -> Any: ...
    def put(self, row: int, sample_id: SampleId, entry: Any) -> bool: ...
    def usage(self) -> tuple[int, int]: ...
    def describe(self) -> str: ...


class _Untold(Exception):
    """A record without a digest: `str` is the reason."""

    def __init__(self, reason: str, record: Any) -> None:
        super().__init__(reason)
        self.record = record


class CachedSource:
    """Records are the samples that `stages` make of the inner source's records."""

    runs_user_code = True

    def __init__(self, inner: Source, stages: tuple[Stage, ...], store: Store, digest: str) -> None:
        self.inner, self.kept_stages, self.store, self.digest = inner, stages, store, digest
        self._is_trusted = False
        self._file_stamps: FileStamps | Literal[False] | None = None  # made when first used, and never pickled
        self._warned: set[str] = set()

    @classmethod
    def of(
        cls,
        source: Source,
        stages: tuple[Stage, ...],
        *,
        at: str | None,
        max_bytes: int,
        where: str | os.PathLike[str],
    ) -> tuple[CachedSource, tuple[Stage, ...]]:
        """Returns the cached source and the stages that come after it; see `Plan.cache`.

        Raises:
            ConfigurationError: there is nothing that could be kept, `at` is not known or comes after a random stage, a
                stage cannot be told from another, or the arguments do not fit.
        """
        if isinstance(source, cls):
            raise ConfigurationError("this plan keeps samples already", where=Where(stage=str(source.kept_stages[-1])))
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ConfigurationError(f"max_bytes={max_bytes!r}: expected bytes, 1 or more", do="max_bytes=4 * 2**30")
        num_kept = _num_kept(stages, at)
        kept = stages[:num_kept]
        try:
            digest = stages_digest(kept)
        except Unhashable as error:
            raise ConfigurationError(
                f"the samples cannot be kept: {error}",
                where=Where(stage=str(kept[-1])),
                why="a kept sample is used again only if the stages are known to be the same, and this has no digest",
                do="build it inside the function, or give it to a later stage, or at=... an earlier stage",
            ) from error
        store: Store
        if where == "memory":
            store = MemoryStore(len(source), max_bytes)
        else:
            store = DiskStore(default_folder() if where == "disk" else Path(where), digest, max_bytes)
        return cls(source, kept, store, digest), stages[num_kept:]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file_stamps": None}

    # A source.

    def __len__(self) -> int:
        return len(self.inner)

    def read_many(self, indices: Sequence[int]) -> list[Any]:
        """Returns one sample per index, from the store where it is there, else made and put there."""
        return [self.read_one(operator.index(index)) for index in indices]

    @property
    def gathers(self) -> bool:
        """True if the samples lie in memory, from where whole batches can be copied."""
        return isinstance(self.store, MemoryStore)

    def gather(self, rows: npt.NDArray[np.int64]) -> Any:
        """Returns the batch that torch's `default_collate(read_many(rows))` would make, copied row by row.

        Raises:
            NotGathered: a sample is not kept yet, or they do not join plainly.
        """
        if not isinstance(self.store, MemoryStore):
            raise NotGathered
        indices = rows.tolist()
        if not indices or min(indices) < 0 or max(indices) >= len(self):
            raise NotGathered
        batch = self._joined_alike(self.store, rows)
        if batch is not None:
            return batch
        views = []
        for index in indices:
            view = self.store.look(index, self._stamp(index)[0])
            if view is None:
                raise NotGathered
            views.append(view)
        return join(views)

    def _joined_alike(self, store: MemoryStore, rows: npt.NDArray[np.int64]) -> Any:
        """Returns the batch of files whose samples have one form: nothing is looked up one by one. Else None."""
        if self._file_stamps is None:
            self._file_stamps = file_stamps(self.inner) or False
        if self._file_stamps is False:
            return None
        try:
            found = store.alike(rows, self._file_stamps.of(rows))
        except (OSError, OverflowError):
            return None
        return None if found is None else join_alike(found[0], store.bytes, found[1])

    def sample_id(self, index: int) -> SampleId:
        """Returns the inner source's identity."""
        return self.inner.sample_id(index)

    def locate(self, index: int) -> str | None:
        """Returns where the inner source's record lies."""
        return self.inner.locate(index)

    def fingerprint(self) -> str:
        """Returns the inner source's fingerprint: keeping samples changes no sample."""
        return self.inner.fingerprint()

    def usage(self) -> tuple[int, int]:
        """Returns (samples kept, bytes used of `max_bytes`)."""
        return self.store.usage()

    def __getattr__(self, name: str) -> Any:
        if name in _DELEGATED:
            return getattr(self.inner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CachedSource):
            return NotImplemented
        return (self.inner, self.kept_stages, self.digest) == (other.inner, other.kept_stages, other.digest)

    def __hash__(self) -> int:
        return hash((self.inner, self.kept_stages, self.digest))

    def __repr__(self) -> str:
        names = " -> ".join(stage.name for stage in self.kept_stages)
        return f"{self.inner!r} -> {names}, kept in {self.store.describe()} (at most {self.store.max_bytes:,} bytes)"

    def read_one(self, index: int) -> Any:
        """Returns the sample of one row."""
        sample_id = self.inner.sample_id(index)
        try:
            stamp, may_keep, record = self._stamp(index)
        except _Untold as untold:
            self._warn(str(untold))
            return self._make(untold.record)
        sample = self.store.get(index, sample_id, stamp)
        return self._made(index, sample_id, stamp if may_keep else None, record) if sample is MISS else sample

    # One sample.

    def _stamp(self, index: int) -> tuple[bytes, bool, Any]:
        """Returns what the content of a row is now, whether it may be kept, and the record if it had to be read.

        Raises:
            _Untold: it has no digest.
        """
        seen = file_stamp(self.inner, index)
        if seen is not None:
            return *seen, MISS
        record = self._record(index)
        try:
            return record_stamp(record), True, record
        except Unpackable as error:
            reason = str(error).replace("sample", "record", 1)
            raise _Untold(f"{reason}, so that a changed record could not be told from an old one", record) from error

    def _record(self, index: int) -> Any:
        return self.inner.read_many([index])[0]

    def _make(self, record: Any) -> Any:
        """Returns what the kept stages make of a record; an exception carries the name of its stage."""
        for stage in self.kept_stages:
            try:
                record = stage.function(record)
            except Exception as error:
                error.headrace_stage = str(stage)  # type: ignore[attr-defined]
                raise
        return record

    def _made(self, index: int, sample_id: SampleId, stamp: bytes | None, record: Any = MISS) -> Any:
        """Makes a sample and keeps it, unless its stages drew from global generators."""
        if record is MISS:
            record = self._record(index)
        # Threads share the global generators with the trainer, whose draws are not the stages' fault: there, stages
        # that were once seen not to draw are trusted. In a process of its own every sample is watched.
        is_watched = not self._is_trusted or threading.current_thread() is threading.main_thread()
        before = generators.capture() if is_watched else None
        sample = self._make(record)
        moved = () if before is None else generators.moved_since(before)
        if moved:
            self._warn(f"making sample {sample_id} drew from {', '.join(moved)}, so it comes out differently each time")
            return sample
        self._is_trusted = True
        if stamp is not None:
            try:
                self.store.put(index, sample_id, encode(pack(sample), stamp))
            except Unpackable as error:
                self._warn(f"{error}, which would not come back from the cache as it was")
        return sample

    def _warn(self, reason: str) -> None:
        """Says once per reason and process that samples are not kept."""
        kind = reason.rpartition(",")[2]
        if kind in self._warned:
            return
        self._warned.add(kind)
        warnings.warn(
            f"samples after stage {self.kept_stages[-1]} are loaded and not kept: {reason}. Kept are dicts, tuples and "
            "lists of arrays, tensors, numbers and strings, made without random draws.",
            UserWarning,
            stacklevel=2,
        )


def _num_kept(stages: tuple[Stage, ...], at: str | None) -> int:
    """Number of stages whose result is kept; refuses what cannot be."""
    num_deterministic = next((place for place, stage in enumerate(stages) if stage.takes_rng), len(stages))
    names = [stage.name for stage in stages]
    if at is None and num_deterministic:
        return num_deterministic
    if at is None:
        first = f"its first stage {stages[0]} is random" if stages else "it has no stages"
        raise ConfigurationError(
            f"there is nothing to keep in this plan: {first}",
            why="kept is what deterministic stages make of a record; records are read anew each time",
            do="put the decoding into a stage of its own, before the random ones: .map(decode).map(crop)",
        )
    if at not in names:
        raise ConfigurationError(f"at={at!r} is no stage of this plan{nearest(at, names)}", do=f"at= one of {names}")
    place = names.index(at) + 1
    if place > num_deterministic:
        random = stages[num_deterministic]
        raise ConfigurationError(
            f"samples cannot be kept after stage {at!r}: stage {random.name!r} is random",
            where=Where(stage=str(random)),
            why="a kept sample would repeat the draws of its first epoch in every epoch",
            do=f"at={names[num_deterministic - 1]!r}" if num_deterministic else "put a deterministic stage before it",
        )
    return place
