"""One examination of a user's loader with workers, in the child: walks, compares, shrinks, tells.

    listed batches ──▶ epoch 1 in workers ──▶ epoch 2, other way round ──▶ (stopped? shrink) ──▶ one process, each twice

Workers come first: what a data set opens or makes lazily must not yet be there when they are forked.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import importlib
import itertools
import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from headrace.doctor.evidence import Evidence, LoaderFacts
from headrace.doctor.evidence.randomness import WorkerDraws
from headrace.doctor.evidence.workers import (
    FieldDifference,
    WorkerComparison,
    WorkerEnd,
    WorkerEnds,
    WorkerError,
)
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.graph_walk import walk
from headrace.doctor.subject import Subject
from headrace.doctor.subject.looking import function_name
from headrace.doctor.walks.comparison import Index, by_index, differing, fixed_fields
from headrace.doctor.walks.draws import compare_draws
from headrace.doctor.walks.field_digests import Digests
from headrace.doctor.walks.journal import Event
from headrace.doctor.walks.loader_walk import LoaderWalk, Pass, Stop
from headrace.doctor.walks.observer import name_index
from headrace.doctor.walks.one_process import OneProcess, read_stream
from headrace.doctor.walks.shares import deal_out, stream_shares
from headrace.doctor.walks.shrinking import shrink
from headrace.errors import SampleId

__all__ = ["Refusal", "WalkWithWorkers"]

MAX_LISTED = 4096
"""Batches that are asked of the sampler: dealing them out to workers is seen in them."""
CHUNK = 8
"""Samples that a worker gets at a time, at most: in this way each gets several turns."""
TRY_PATIENCE_S = 3.0
"""Seconds after which a try is stuck, while shrinking: what it repeats was stuck for longer."""
MAX_TRIES = 24


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why this loader cannot be walked with workers."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WalkWithWorkers:
    """The experiment; yields each kind of evidence as soon as it is known. Starts workers, as the loader does."""

    name: ClassVar[str] = "workers"
    starts_processes: ClassVar[bool] = True

    num_workers: int
    """Workers to start."""
    facts: LoaderFacts
    folder: str
    """For the journals. The parent's: it outlives this process, however that ends."""
    max_samples: int
    """Different samples."""
    max_repeated: int
    """Samples in all, where it is worth while to read them again and again."""
    walk_s: float
    """Seconds for each walk."""
    patience_s: float
    """Seconds without progress after which a worker is stuck."""
    seed: int
    left_out: frozenset[int] = frozenset()
    """Rows that take an interpreter with them, as is known."""
    wanted: tuple[int, ...] = ()
    """Rows to take along: those that are known to raise an error."""
    calls_collate: bool = True
    """False: the loader's own collate function is known to fail in one process, too."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Evidence | Refusal]:
        """Walks, compares, tells."""
        torch_data = importlib.import_module("torch.utils.data") if subject.loader is not None else None
        if torch_data is None or not isinstance(subject.loader, torch_data.DataLoader):
            yield Refusal(reason="only torch's DataLoader, and what derives from it, is walked with workers")
            return
        yield from _Examination(self, subject, bench, pathlib.Path(self.folder)).run()


class _Examination:
    """One run of the experiment, in the child."""

    def __init__(self, wish: WalkWithWorkers, subject: Subject, bench: Bench, folder: pathlib.Path) -> None:
        self.wish, self.subject, self.bench, self.folder = wish, subject, bench, folder
        self.loader = subject.loader
        self.indices: dict[Index, Any] = {}
        """The data set's own indices by the names that journals give them."""
        collate = getattr(self.loader, "collate_fn", None)
        self.collate = collate if wish.calls_collate and not subject.has_default_collate else None

    def run(self) -> Iterator[Evidence | Refusal]:
        chunks = [] if self.wish.facts.is_iterable else self._list_batches()
        if not self.wish.facts.is_iterable and not chunks:
            yield Refusal(reason="the loader has no batches, so there is nothing to share out among workers")
            return
        passes = self._walk_twice(chunks)
        if passes[0].outcome == "failed":
            yield Refusal(reason=f"the workers could not be started: {passes[0].error}")
            return
        ends = self._ends(passes)
        yield ends
        yield self._draws(passes)
        if self.wish.facts.is_iterable:
            yield from self._compare_stream(passes, ends)
        else:
            yield from self._compare_samples(passes, ends)

    # With workers.

    def _list_batches(self) -> list[list[Any]]:
        """The samples of the loader's first batches, in its own order, in parts that are dealt out to the workers."""
        drawn: list[Any] = []
        with self.bench.holding(None, None, stage="sampler"):
            self.bench.stop_listening()
            deadline = time.monotonic() + self.wish.walk_s / 4
            for batch in itertools.islice(iter(self.loader._index_sampler), MAX_LISTED):
                drawn.append(list(batch) if self.subject.joins_samples else batch)
                self.is_all_listed = False
                if time.monotonic() > deadline:
                    break
            else:
                self.is_all_listed = len(drawn) < MAX_LISTED
        self.listed = [len(batch) if self.subject.joins_samples else 1 for batch in drawn]
        flat = [*self.wish.wanted, *(itertools.chain.from_iterable(drawn) if self.subject.joins_samples else drawn)]
        for index in flat:
            if len(self.indices) >= self.wish.max_samples:
                break
            if name_index(index) not in self.wish.left_out:
                self.indices.setdefault(name_index(index), index)
        chosen = list(self.indices.values())
        size = max(1, min(CHUNK, len(chosen) // (4 * self.wish.num_workers)))
        chunks = [chosen[start : start + size] for start in range(0, len(chosen), size)]
        if chosen and _holds_something_open(self.subject.dataset):
            chunks *= max(1, self.wish.max_repeated // len(chosen))
        return chunks

    def _walk(self, name: str, chunks: Sequence[Sequence[Any]], *, num_workers: int, persistent: bool) -> LoaderWalk:
        return LoaderWalk(
            self.loader,
            self.bench,
            self.folder / name,
            num_workers=num_workers,
            persistent=persistent,
            user_collate=self.collate,
            is_batched=self.subject.joins_samples,
            **self._dealt(chunks),
        )

    def _dealt(self, chunks: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """What makes the loader deal out these samples and no others."""
        if self.wish.facts.is_iterable:
            return {}
        if self.subject.joins_samples:
            return {"batch_sampler": [list(chunk) for chunk in chunks]}
        return {"sampler": list(itertools.chain.from_iterable(chunks))}

    def _walk_twice(self, chunks: list[list[Any]]) -> list[Pass]:
        """Two epochs, in fresh workers or in the same ones, as the loader has it."""
        wish = self.wish
        is_persistent = wish.facts.persistent_workers and wish.facts.num_workers > 0
        limit = wish.max_samples * wish.num_workers if wish.facts.is_iterable else None
        go = functools.partial(LoaderWalk.walk, patience_s=wish.patience_s, max_s=wish.walk_s / 2, max_samples=limit)
        self.bench.reseed(wish.seed, "workers")
        self._tell_epoch(0)
        passes = []
        if is_persistent:
            with self._walk("kept", chunks, num_workers=wish.num_workers, persistent=True) as walked:
                passes.append(go(walked))
                if passes[0].outcome == "done":
                    self._tell_epoch(1)
                    passes.append(go(walked))
            return passes
        with self._walk("first", chunks, num_workers=wish.num_workers, persistent=False) as walked:
            passes.append(go(walked))
        if passes[0].outcome in {"done", "limit"}:
            self._tell_epoch(1)
            other_way = [chunk[::-1] for chunk in chunks[::-1]]
            with self._walk("second", other_way, num_workers=wish.num_workers, persistent=False) as walked:
                passes.append(go(walked))
        return passes

    def _tell_epoch(self, epoch: int) -> None:
        """As a training loop does it, where the data set wants to know."""
        told_to = getattr(self.subject.dataset, "set_epoch", None)
        if callable(told_to):
            with contextlib.suppress(Exception):
                told_to(epoch)

    # How they fared.

    def _ends(self, passes: Sequence[Pass]) -> WorkerEnds:
        stops = [one.stop for one in passes if one.stop is not None]
        return WorkerEnds(
            num_workers=self.wish.num_workers,
            num_own_workers=self.wish.facts.num_workers,
            start_method=self.wish.facts.start_method,
            num_samples=sum(one.num_delivered for one in passes),
            ends=tuple(self._end(stop) for stop in stops),
            errors=self._errors(passes),
        )

    def _end(self, stop: Stop) -> WorkerEnd:
        fewest, num_tries, is_any = None, 0, False
        if not self.wish.facts.is_iterable and stop.indices and stop.stage in {"sample", "collate"}:
            fewest, num_tries, is_any = self._shrink(stop)
        return WorkerEnd(
            kind=stop.kind,
            cause=stop.cause,
            stage=stop.stage,
            sample_ids=self._ids(stop.indices),
            at=stop.at,
            stack=stop.stack,
            waited_s=stop.waited_s,
            fewest_ids=fewest,
            num_attempts=num_tries,
            is_any_sample=is_any,
            in_one_process="unknown",
        )

    def _shrink(self, stop: Stop) -> tuple[tuple[SampleId, ...] | None, int, bool]:
        """Tries again, in fresh workers, with what it had in hand, else with all that it had had; then with fewer."""
        number = itertools.count()

        def stops_again(names: Sequence[Index]) -> bool:
            chunk = [self.indices[name] for name in names]
            with self._walk(f"try-{next(number)}", [chunk], num_workers=1, persistent=False) as walked:
                found = walked.walk(patience_s=TRY_PATIENCE_S, max_s=self.wish.walk_s)
            return found.stop is not None and found.stop.kind == stop.kind

        in_hand = [name for name in stop.indices if name in self.indices]
        everything = [*dict.fromkeys(name for name in stop.before if name in self.indices and name not in in_hand)]
        max_tries = MAX_TRIES if stop.kind == "died" else MAX_TRIES // 3
        found = shrink(in_hand, stops_again, max_tries=max_tries)
        if found is None and everything:
            found = shrink([*everything, *in_hand], stops_again, max_tries=max_tries)
        if found is None:
            return None, next(number), False
        others = [name for name in self.indices if name not in stop.indices and name not in stop.before]
        is_any = not stop.before and bool(others) and stops_again(others[-1:])
        return self._ids(found.items), next(number), is_any

    def _errors(self, passes: Sequence[Pass]) -> tuple[WorkerError, ...]:
        """One for each type and place."""
        found: dict[tuple[Any, ...], WorkerError] = {}
        struck: dict[tuple[Any, ...], set[Index]] = collections.defaultdict(set)
        came_out = collections.Counter(
            name for one in passes for name, samples in by_index(one.journals).items() for _ in samples
        )
        for event, batch in itertools.chain.from_iterable(map(_failed, (j for one in passes for j in one.journals))):
            key = (event["error_type"], event["stage"], event["error_at"])
            struck[key].update(event.get("indices", batch))
            if key in found:
                found[key] = dataclasses.replace(found[key], num_errors=found[key].num_errors + 1)
                continue
            found[key] = WorkerError(
                error_type=event["error_type"],
                message=event["message"],
                stage=event["stage"],
                sample_ids=() if self.wish.facts.is_iterable else self._ids(event.get("indices", batch)),
                at=event["error_at"],
                arrives_as=event["arrives_as"],
                in_one_process="unknown",
            )
        return tuple(
            dataclasses.replace(one, num_came_out=sum(came_out[name] for name in struck[key]))
            for key, one in found.items()
        )

    def _ids(self, names: Sequence[Index]) -> tuple[SampleId, ...]:
        return tuple(self._id(name) for name in names)

    def _id(self, name: Index) -> SampleId:
        index = self.indices.get(name, name)
        is_row = isinstance(name, int) and not self.wish.facts.is_iterable
        return self.subject.sample_id(int(index)) if is_row else str(name)

    # What they drew.

    def _draws(self, passes: Sequence[Pass]) -> WorkerDraws:
        user_init = getattr(self.loader, "worker_init_fn", None)
        facts = self.wish.facts
        return WorkerDraws(
            num_workers=self.wish.num_workers,
            num_own_workers=facts.num_workers,
            is_persistent=facts.persistent_workers and facts.num_workers > 0,
            is_iterable=facts.is_iterable,
            role=facts.role,
            worker_init_fn=None if user_init is None else function_name(user_init),
            generators=compare_draws([one.journals for one in passes], is_iterable=facts.is_iterable),
        )

    # Against one process.

    def _compare_samples(self, passes: Sequence[Pass], ends: WorkerEnds) -> Iterator[Evidence]:
        yield deal_out(self.listed, self.wish.facts, is_complete=self.is_all_listed)
        first = [
            name
            for ids in [one.sample_ids for one in ends.ends] + [one.sample_ids for one in ends.errors]
            for name in self._names(ids)
        ]
        self._tell_epoch(0)
        single_process = OneProcess(
            self.wish,
            self.subject,
            self.bench,
            self.indices,
            self.collate,
            self._id,
            shares_nothing=self.wish.facts.start_method == "fork" and not _holds_something_open(self.subject.dataset),
        )
        reads = single_process.read_twice([*dict.fromkeys(first), *self.indices])
        ends = self._with_single(ends, single_process)
        yield ends
        single = {name: samples[0] for name, samples in reads.items()}
        fields = fixed_fields(reads)
        # A data set that is told the epoch may deliver something else in the second one.
        knows_epochs = callable(getattr(self.subject.dataset, "set_epoch", None))
        walked = [by_index(one.journals) for one in (passes[:1] if knows_epochs else passes)]
        found: dict[str, list[Index]] = {}
        for one in walked:
            for field, names in differing(single, one, fields).items():
                found[field] = [*dict.fromkeys([*found.get(field, ()), *names])]
        yield WorkerComparison(
            num_workers=self.wish.num_workers,
            num_own_workers=self.wish.facts.num_workers,
            start_method=self.wish.facts.start_method,
            num_compared=len(single.keys() & set(itertools.chain.from_iterable(walked))),
            fixed_fields=fields,
            differences=self._explain(found, single),
            errors=tuple(error for error in ends.errors if error.in_one_process == "fine"),
        )

    def _names(self, ids: Sequence[SampleId]) -> list[Index]:
        wanted = set(ids)
        return [name for name in self.indices if self._id(name) in wanted]

    def _with_single(self, ends: WorkerEnds, single_process: OneProcess) -> WorkerEnds:
        """The ends and errors, with what one process makes of the same samples."""
        return dataclasses.replace(
            ends,
            ends=tuple(
                dataclasses.replace(end, in_one_process=single_process.judge_end(end, self._names(end.sample_ids)))
                for end in ends.ends
            ),
            errors=tuple(single_process.judge_error(error, self._names(error.sample_ids)) for error in ends.errors),
        )

    def _explain(
        self, found: Mapping[str, Sequence[Index]], single: Mapping[Index, Digests]
    ) -> tuple[FieldDifference, ...]:
        """Asks one worker alone for the samples that differ: do workers disturb each other, or is each one different?"""
        if not found:
            return ()
        names = list(dict.fromkeys(itertools.chain.from_iterable(found.values())))[:32]
        chunks = [[self.indices[name]] for name in names]
        alone_twice = []
        for number in range(2):
            with self._walk(f"alone-{number}", chunks, num_workers=1, persistent=False) as lone:
                alone_twice.append(lone.walk(patience_s=self.wish.patience_s, max_s=self.wish.walk_s / 2))
        looked_at = {name: single[name] for name in names}
        alone = [by_index(one.journals) for one in alone_twice]
        explained = []
        for field, differ in found.items():
            is_other = bool(differing(looked_at, alone[0], [field]) or differing(looked_at, alone[1], [field]))
            before = {name: samples[0][1] for name, samples in alone[0].items()}
            varies = bool(differing(before, alone[1], [field]))
            is_known = all(one.outcome == "done" for one in alone_twice)
            explained.append(
                FieldDifference(
                    field=field,
                    num_different=len(differ),
                    num_compared=len(single),
                    sample_ids=self._ids(list(differ)[:5]),
                    lone_worker="unknown"
                    if not is_known
                    else ("varies" if varies else "different")
                    if is_other
                    else "equal",
                )
            )
        return tuple(explained)

    def _compare_stream(self, passes: Sequence[Pass], ends: WorkerEnds) -> Iterator[Evidence]:
        """Counts, and contents where they are the same in two walks of one process."""
        walks, error = [], None
        for seed in (1, 2):
            self._tell_epoch(0)
            found, error = read_stream(self.wish, self.subject, self.bench, seed)
            walks.append(found)
            if error is not None:
                break
        verdict: Literal["fine", "same", "unknown"] = (
            "unknown" if error is None and None in walks else ("fine" if error is None else "same")
        )
        ends = dataclasses.replace(
            ends,
            ends=tuple(dataclasses.replace(end, in_one_process=verdict) for end in ends.ends),
            errors=tuple(dataclasses.replace(one, in_one_process=verdict) for one in ends.errors),
        )
        yield ends
        yield stream_shares(passes[0], walks, self.wish.facts, num_workers=self.wish.num_workers)
        yield WorkerComparison(
            num_workers=self.wish.num_workers,
            num_own_workers=self.wish.facts.num_workers,
            start_method=self.wish.facts.start_method,
            num_compared=0,
            fixed_fields=(),
            errors=tuple(one for one in ends.errors if one.in_one_process == "fine"),
        )


def _failed(events: Iterable[Event]) -> Iterator[tuple[Event, list[Index]]]:
    """Yields each error of a journal, with the samples of the batch that was being made."""
    batch: list[Index] = []
    for event in events:
        if event["at"] == "end" and event["index"] is not None:
            batch.append(event["index"])
        elif event["at"] == "error":
            yield event, batch if event["stage"] == "collate" else []
        if event["at"] in {"batch", "error"}:
            batch = []


def _holds_something_open(dataset: Any) -> bool:
    """True if the data set holds files, archives or the like, on which workers may meet."""
    return any(hasattr(type(value), "seek") or hasattr(type(value), "fileno") for _, value in walk(dataset))
