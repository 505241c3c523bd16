"""Walks a stream twice, as two epochs would, and once with its workers: what comes, in which order, against `len`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.orders import EpochCounts, EpochPass, LabelOrder, Orders
from headrace.doctor.experiments.orders import role_of
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.digests import digest, label_of
from headrace.doctor.probes.order_draws import Drawn, adjacency, displacement, label_order
from headrace.doctor.probes.sources import Source, read_source
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.subject.samplers import draws, set_epoch_holders, told_class, told_place
from headrace.doctor.subject.walking import end_pass

__all__ = ["STEP", "CountWithWorkers", "TaggedPass", "WalkStream", "tagged", "walked"]

MAX_SAMPLES = 50_000
"""Samples at most in one walk."""
BARE_BATCH = 32
"""Samples taken for a batch where nothing says how many make one."""

Tag = tuple[str | None, int | str | None]
"""(digest, class) of one sample."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WalkStream:
    """The experiment; yields Orders and EpochCounts. Reads the whole stream twice, within the limits."""

    name: ClassVar[str] = "epochs"
    starts_processes: ClassVar[bool] = False

    source: Source
    role: Literal["train", "evaluation"] | None
    walk_s: float
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[Evidence]:
        """Two passes; a second one only if the first came to its end."""
        holders = set_epoch_holders(_Bare(subject.dataset) if subject.loader is None else subject.loader)
        is_told = any(not call.is_constant for call in self.source.epoch_calls)
        bench.reseed(self.seed, "epochs")
        passes: list[TaggedPass] = []
        for epoch in range(2):
            for holder in holders if is_told else ():
                holder.set_epoch(epoch)
            if subject.num_workers and not getattr(subject.loader, "persistent_workers", False):
                bench.reseed(self.seed, "epochs", epoch)  # its workers are seeded anew in each epoch
            passes.append(self._walk(subject, bench))
            if not passes[-1].drawn.is_complete:
                break
        follows = None
        if len(passes) == 2 and holders and not is_told and passes[1].drawn.ids == passes[0].drawn.ids:
            for holder in holders:
                holder.set_epoch(7)
            follows = self._walk(subject, bench).drawn.ids != passes[0].drawn.ids
        yield self._orders(subject, passes, holders, is_told, follows)
        yield EpochCounts(
            source=told_class(subject.dataset),
            source_at=told_place(subject.dataset),
            # Of another library's batches only the samples are counted here.
            said_batches=None if subject.loader is None and subject.is_batched else subject.num_batches,
            single=tuple(one.counted() for one in passes),
            num_workers=subject.num_workers,
            batch_size=subject.batch_size,
            drop_last=subject.drop_last,
            is_stream=True,
            resets_at=self.source.resets_at,
        )

    def _walk(self, subject: Subject, bench: Bench) -> TaggedPass:
        return walked(tagged(subject), bench, self.walk_s / 2)

    def _orders(
        self,
        subject: Subject,
        passes: Sequence[TaggedPass],
        holders: Sequence[Any],
        is_told: bool,
        follows: bool | None,
    ) -> Orders:
        first = passes[0].drawn
        other = passes[1].drawn if len(passes) > 1 else None
        said = draws(subject.dataset, only_orders=True)
        known = None not in first.ids
        repeats = other is not None and known and other.ids == first.ids
        return Orders(
            sampler=told_class(subject.dataset),
            sampler_at=told_place(subject.dataset),
            draws=said if known else "unknown",
            is_stream=True,
            num_rows=subject.num_samples,
            batch_size=max(first.sizes, default=None),
            passes=tuple(one.drawn.told() for one in passes) if known and first.ids else (),
            is_sequential=repeats and said == "never",
            displacement=displacement(first.ids, other.ids) if other and known else None,
            adjacency=adjacency(first.ids, other.ids) if other and known else None,
            labels=passes[0].label_order(),
            set_epoch_of=told_class(holders[0]) if holders else None,
            epochs_told=is_told and bool(holders),
            order_follows_epoch=follows,
            epoch_loop_at=self.source.epoch_loop_at,
            framework=self.source.framework,
            role=self.role,
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CountWithWorkers:
    """The experiment; yields one EpochPass, with the loader's own workers."""

    name: ClassVar[str] = "epoch with workers"
    starts_processes: ClassVar[bool] = True

    walk_s: float
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[EpochPass]:
        """One pass; the workers end before the result is told."""
        bench.reseed(self.seed, "epochs")
        twin = rebuild(subject.loader, collate_fn=_count, persistent_workers=False)
        passed = walked(twin, bench, self.walk_s)
        yield passed.counted()


class _Bare:
    """A data set that stands for a loader without a sampler."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset


def _count(samples: Any) -> list[Tag]:
    """Runs in the worker, in the place of collate: the samples stay there."""
    return [(None, None)] * (len(samples) if isinstance(samples, list) else 1)


def _tag_batch(samples: Any) -> list[Tag]:
    return [(digest(sample), label_of(sample)) for sample in samples]


def _tag_one(sample: Any) -> list[Tag]:
    return [(digest(sample), label_of(sample))]


def tagged(subject: Subject) -> Iterable[list[Tag]]:
    """Returns the loader without workers, its batches replaced by the tags of their samples."""
    loader = subject.loader
    if loader is None or not hasattr(loader, "_index_sampler"):  # another library's
        samples = getattr(subject, "samples", None)
        return map(_tag_one, iter(subject.dataset if loader is None else loader) if samples is None else samples())
    tag: Callable[[Any], list[Tag]] = _tag_batch if subject.joins_samples else _tag_one
    twin: Iterable[list[Tag]] = rebuild(loader, num_workers=0, collate_fn=tag)
    return twin


@dataclasses.dataclass(slots=True)
class TaggedPass:
    """One walk through a stream."""

    drawn: Drawn
    """Digests in the place of ids."""
    labels: list[int | str | None]

    def counted(self) -> EpochPass:
        """The pass as evidence."""
        return EpochPass(
            num_batches=len(self.drawn.sizes),
            num_samples=len(self.drawn.ids),
            is_complete=self.drawn.is_complete,
        )

    def label_order(self) -> LabelOrder | None:
        """None: not every sample has a class, or there are nearly as many as samples."""
        if not self.labels or None in self.labels:
            return None
        numbers = np.unique([str(label) for label in self.labels], return_inverse=True)[1].astype(np.int64)
        if numbers.max() + 1 > max(2, len(numbers) // 5):
            return None
        sizes = self.drawn.sizes
        if max(sizes) == 1:
            sizes = [BARE_BATCH] * (len(numbers) // BARE_BATCH)
        return label_order(numbers, sizes)


def walked(batches: Iterable[list[Tag]], bench: Bench, limit_s: float, most: int = MAX_SAMPLES) -> TaggedPass:
    """Walks from `iter` to the end, or to the limits; the first batch may take what it takes."""
    passed = TaggedPass(Drawn(ids=[], sizes=[], is_complete=False), [])
    with bench.holding(None, None, stage="stream"):
        iterator = iter(batches)
    end: float | None = None
    try:
        while len(passed.drawn.ids) < most and (end is None or time.monotonic() < end):
            with bench.holding(len(passed.drawn.ids), None, stage="stream"):
                bench.stop_listening()
                try:
                    tags = next(iterator)
                except StopIteration:
                    passed.drawn.is_complete = True
                    return passed
            end = end or time.monotonic() + limit_s
            passed.drawn.sizes.append(len(tags))
            passed.drawn.ids += [tag for tag, _ in tags]
            passed.labels += [label for _, label in tags]
    finally:
        end_pass(iterator)  # torch does it when the iterator is collected; here it must not wait for that
    return passed


class _Step:
    place = 500
    gives = (Orders, EpochCounts)
    every_split = True

    def run(self, round_: Round) -> None:
        kinds = (Orders, EpochCounts)
        if not round_.facts.is_iterable:
            return  # experiments/orders.py walks its sampler, which says as much
        wishes = round_.wishes
        source = read_source(wishes.spec)
        experiment = WalkStream(source=source, role=role_of(round_, source), walk_s=wishes.walk_s, seed=wishes.seed)
        round_.say("walking the stream twice")
        records, ending = round_.ask(experiment, alone=True)
        round_.found.note(experiment.name, ending, "the stream from its beginning, one pass after another")
        for record in records:
            round_.found.add(record)
        counts = next((record for record in records if isinstance(record, EpochCounts)), None)
        if counts is not None:
            self._with_workers(round_, counts)
        lacking = [kind for kind in kinds if kind not in round_.found.evidence]
        round_.found.lacks(lacking, f"the stream could not be walked: {told(ending)}")

    @staticmethod
    def _with_workers(round_: Round, counts: EpochCounts) -> None:
        """Workers each end with an incomplete batch, or drop it: they are counted too where a length is promised."""
        is_worthwhile = counts.num_workers > 0 and counts.said_batches is not None and counts.single[0].is_complete
        if not is_worthwhile or round_.left_s <= round_.wishes.walk_s:
            return
        experiment = CountWithWorkers(walk_s=round_.wishes.walk_s, seed=round_.wishes.seed)
        records, ending = round_.ask(experiment)
        round_.found.note(experiment.name, ending, f"{counts.num_workers} workers")
        if records:
            round_.found.add(dataclasses.replace(counts, with_workers=tuple(records)))


STEP = _Step()
