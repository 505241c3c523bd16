"""Pretends to be each rank in turn: which samples and batches each would get, and with which random state."""

from __future__ import annotations

import dataclasses
import importlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.ranks import Padding, Ranks, RankSeeds, RankShare
from headrace.doctor.experiments.epochs import tagged, walked
from headrace.doctor.experiments.orders import role_of
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.digests import digest
from headrace.doctor.probes.order_draws import Drawn, walk
from headrace.doctor.probes.sources import Source, read_source
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject
from headrace.doctor.subject.roots import root_rows
from headrace.doctor.subject.samplers import (
    RankPlace,
    chain,
    decider,
    generator_states,
    rank_place,
    told_class,
    told_place,
)
from headrace.doctor.subject.worlds import Built, as_rank, base_seed, in_worker, load_again

__all__ = ["STEP", "PretendRanks", "World", "plan_for", "same_samples"]

MAX_SIMULATED = 8
"""Ranks at most where TARGET says how many there are: overlaps and padding show in a few."""
USUAL = (2, 3, 4, 8)
"""Numbers of ranks for which padding is worked out, where the number is not known."""
MAX_FOLLOWED = 300_000
"""Rows of a data set up to which subsets of ranks are followed to the rows underneath."""
NUM_READ = 3
"""Rows that are prepared in the state of a worker, three times on rank 0 and once on rank 1."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PretendRanks:
    """The experiment; yields Ranks and RankSeeds. Executes the user's modules once per rank, so its child then ends."""

    name: ClassVar[str] = "ranks"
    starts_processes: ClassVar[bool] = True

    spec: str
    split: str
    world_size: int
    source: Source
    role: Literal["train", "evaluation"] | None
    walk_s: float
    max_streamed: int
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[Evidence]:
        """One rank after another; what differs between them is told apart by the samples that each gets."""
        del subject  # made for no rank; each rank makes its own
        yield from self.judge([self.enter(rank, bench) for rank in range(self.world_size)], bench)

    def judge(self, worlds: Sequence[World], bench: Bench) -> Iterator[Evidence]:
        """What the ranks' loaders say together."""
        first = worlds[0]
        follows = all(
            world.place is not None and (world.place.world_size, world.place.rank) == (self.world_size, rank)
            for rank, world in enumerate(worlds)
        )
        drawn = [world.drawn for world in worlds]
        is_fixed = not follows and first.place is not None and first.place.world_size > 1
        if is_fixed and first.place is not None and same_samples(drawn):
            if not first.place.reads_rank_late:
                return  # TARGET fixes the rank when the sampler is made: the other ranks cannot be shown
            drawn = self._by_attributes(first, bench)
        deals_out = follows or is_fixed or self._depends_on_rank(drawn, bench)
        ranks = self.describe(worlds, drawn, "attributes" if is_fixed else "environment", deals_out)
        yield ranks
        if ranks.deals_out or ranks.parallel_at:
            seeds = self._seeds(worlds, bench)
            if seeds is not None:
                yield seeds

    def _depends_on_rank(self, drawn: Sequence[Drawn], bench: Bench) -> bool:
        """From the same random state, do two ranks get different samples? Else an unseeded split tells them apart."""
        return not same_samples(drawn) and not same_samples([drawn[0], self.enter(1, bench, start=0).drawn])

    def enter(self, rank: int, bench: Bench, start: int | None = None) -> World:
        """Makes TARGET as one rank would, and draws its epoch."""
        with as_rank(rank, self.world_size):
            return self.make(rank, bench, start)

    def make(self, rank: int, bench: Bench, start: int | None = None) -> World:
        """Makes TARGET in a process that is, or is told that it is, one rank."""
        # Processes of their own start from different random states.
        bench.reseed(self.seed, "rank", rank if start is None else start)
        with bench.holding(None, None, stage=f"loader of rank {rank}"):
            subject, built = load_again(self.spec, self.split)
        state = _state()
        place = None if subject.loader is None else rank_place(subject.loader)
        return World(rank, subject, built, place, state, _universe(subject), self.draw(subject, bench))

    def draw(self, subject: Subject, bench: Bench) -> Drawn:
        """One epoch of a loader: which samples, in which batches."""
        if subject.is_iterable:
            return walked(tagged(subject), bench, self.walk_s / self.world_size, self.max_streamed).drawn
        sampler = getattr(subject.loader, "batch_sampler", None)
        sampler = subject.loader.sampler if sampler is None else sampler
        drawn = walk(sampler, bench, self.walk_s / self.world_size)
        rows = drawn.rows()
        if rows is not None and _are_rows(rows, subject.num_samples) and _is_followed(subject):
            drawn.ids = list(_root_ids(subject.dataset, rows))  # each rank may have a subset of its own
        return drawn

    def _by_attributes(self, world: World, bench: Bench) -> list[Drawn]:
        """The same sampler, told to be each rank in turn, from the same random state."""
        place = world.place
        assert place is not None
        own = place.rank
        set_back = generator_states(world.subject.loader)
        drawn = []
        try:
            for rank in range(min(place.world_size, MAX_SIMULATED)):
                setattr(place.holder, place.rank_name, rank)
                bench.reseed(self.seed, "rank")
                set_back()
                drawn.append(self.draw(world.subject, bench))
        finally:
            setattr(place.holder, place.rank_name, own)
        return drawn

    def describe(
        self,
        worlds: Sequence[World],
        drawn: Sequence[Drawn],
        how: Literal["environment", "attributes", "processes"],
        deals_out: bool,
    ) -> Ranks:
        """The evidence."""
        world = worlds[0]
        subject, sets = world.subject, [set(one.ids) for one in drawn]
        num_rows = None if subject.is_iterable else len(set().union(*(one.universe for one in worlds)))
        num_rows = num_rows or subject.num_samples
        union = set().union(*sets)
        holder = world.place.holder if world.place else decider(subject.loader)
        holder = subject.dataset if subject.is_iterable else holder
        size = world.place.world_size if how == "attributes" and world.place else self.world_size
        return Ranks(
            world_size=size,
            how=how,
            sampler=told_class(holder),
            sampler_at=told_place(holder),
            deals_out=deals_out,
            shares=tuple(
                RankShare(
                    num_batches=len(one.sizes) or len(one.ids),
                    num_samples=len(one.ids),
                    num_different=len(set(one.ids)),
                )
                for one in drawn
            ),
            overlap=tuple(tuple(len(one & other) for other in sets) for one in sets),
            num_union=len(union),
            num_rows=num_rows,
            is_complete=all(one.is_complete for one in drawn) and len(drawn) == size,
            batch_size=max((max(one.sizes, default=1) for one in drawn), default=None),
            by="content" if subject.is_iterable else "row",
            drop_last=bool(getattr(holder, "drop_last", False)),
            shuffles=_flag(holder, "shuffle"),
            is_stream=subject.is_iterable,
            paddings=tuple(_paddings(holder, subject.num_samples)),
            parallel_at=self.source.parallel_at,
            joins_at=self.source.joins_at,
            counts_once_at=self.source.counts_once_at,
            framework=self.source.framework,
            replaced=_replaced(subject, world.built),
            role=self.role,
        )

    def _seeds(self, worlds: Sequence[World], bench: Bench) -> RankSeeds | None:
        """Prepares rows as worker 0 of rank 0 and of rank 1 would (or the process itself, without workers)."""
        if len(worlds) < 2 or worlds[0].subject.is_iterable or not worlds[0].subject.num_samples:
            return None
        count = worlds[0].subject.num_samples
        rows = sorted({0, count // 2, count - 1})[:NUM_READ]
        is_executed = worlds[0].is_alike(worlds[1])
        repeated = self.seed if self.source.seeded_at is not None and not is_executed else None
        readers = [_Reader(world, bench, repeated) for world in worlds[:2]]
        places, places_beside = _same_places(worlds, rows)
        one, again, other = (readers[0].read(places, shift) for shift in (0, 0, 1))
        beside = readers[1].read(places_beside, 0)
        is_random = [
            a is not None and a == b and c is not None and a != c for a, b, c in zip(one, again, other, strict=True)
        ]
        return RankSeeds(
            num_workers=worlds[0].subject.num_workers,
            seeds=(readers[0].seed, readers[1].seed),
            num_read=len(places),
            num_random=sum(is_random),
            num_equal=sum(flag and a == d for flag, a, d in zip(is_random, one, beside, strict=True)),
            seeded_at=self.source.seeded_at,
            is_executed=is_executed,
            init=_init_name(worlds[0].subject),
            framework=self.source.framework,
            role=self.role,
        )


_Place = tuple[Callable[[int], Any], int]
"""(what reads a row, the row)."""


@dataclasses.dataclass(slots=True)
class World:
    """TARGET as one rank has it."""

    rank: int
    subject: Subject
    built: Built
    place: RankPlace | None
    state: tuple[Any, ...]
    """Random state after the loader was made."""
    universe: frozenset[Any]
    """Rows that its data set has, told by the data sets underneath; empty for a stream."""
    drawn: Drawn

    def is_alike(self, other: World) -> bool:
        """True if both ranks stand at the same random state: something seeded both."""
        return bool(_state_digest(self.state) == _state_digest(other.state))


class _Reader:
    """Prepares rows in the state that a rank has."""

    def __init__(self, world: World, bench: Bench, seed: int | None) -> None:
        self._world, self._bench = world, bench
        _set_state(world.state)
        if seed is not None:
            bench.reseed(seed, "ranks")  # what the source does before it iterates, on every rank alike
        self._state = _state()
        loader = world.subject.loader
        has_workers = world.subject.num_workers > 0
        self.seed = base_seed(loader) if has_workers else int(importlib.import_module("torch").initial_seed())
        self._has_workers = has_workers

    def read(self, places: Sequence[_Place], shift: int) -> list[str | None]:
        """Digests of the prepared rows; from another state if `shift` is not 0."""
        subject = self._world.subject
        with as_rank(self._world.rank, 2):
            if self._has_workers:
                with in_worker(subject.loader, self.seed + 1_000_003 * shift):
                    return self._digests(places)
            _set_state(self._state)
            if shift:
                self._bench.reseed(shift, "elsewhere")
            return self._digests(places)

    def _digests(self, places: Sequence[_Place]) -> list[str | None]:
        found: list[str | None] = []
        for read, row in places:
            with self._bench.holding(row, row):
                try:
                    found.append(digest(read(row)))
                except Exception:  # the reads probe tells of rows that cannot be read
                    found.append(None)
        return found


def _same_places(worlds: Sequence[World], rows: Sequence[int]) -> tuple[list[_Place], list[_Place]]:
    """The same samples on ranks 0 and 1: by the loaders' data sets if both have them, else by those underneath."""
    one, other = worlds[0].subject, worlds[1].subject
    if other.num_samples == one.num_samples and _is_followed(one):
        ids = list(_root_ids(one.dataset, np.asarray(rows)))
        at = {found: row for row, found in enumerate(_root_ids(other.dataset, np.arange(other.num_samples or 0)))}
        if all(found in at for found in ids):
            return [(one.read, row) for row in rows], [(other.read, at[found]) for found in ids]
    ((root, inner), *_) = root_rows(one.dataset, np.asarray(rows))
    ((beside, _), *_) = root_rows(other.dataset, np.asarray([0]))
    return [(root.__getitem__, int(row)) for row in inner], [(beside.__getitem__, int(row)) for row in inner]


def _state() -> tuple[Any, ...]:
    torch = importlib.import_module("torch")
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    return random.getstate(), None if numpy_random is None else numpy_random.get_state(), torch.get_rng_state()


def _set_state(state: tuple[Any, ...]) -> None:
    random.setstate(state[0])
    numpy_random: Any = getattr(sys.modules.get("numpy"), "random", None)
    if numpy_random is not None and state[1] is not None:
        numpy_random.set_state(state[1])
    importlib.import_module("torch").set_rng_state(state[2])


def _state_digest(state: tuple[Any, ...]) -> Any:
    """Torch's state, which is where the seeds of workers come from."""
    return state[2].numpy().tobytes()


def _are_rows(rows: Any, count: int | None) -> bool:
    return count is not None and len(rows) > 0 and int(rows.min()) >= 0 and int(rows.max()) < count


def _root_ids(dataset: Any, rows: Any) -> Iterator[Any]:
    """Rows as those of the data sets underneath, which are the same ones on all ranks: (number of the set, row)."""
    for number, (_, inner) in enumerate(root_rows(dataset, rows)):
        yield from ((number, row) for row in inner.tolist())


def _universe(subject: Subject) -> frozenset[Any]:
    rows = np.arange(subject.num_samples or 0)
    return frozenset(_root_ids(subject.dataset, rows)) if _is_followed(subject) else frozenset()


def _is_followed(subject: Subject) -> bool:
    """True for data sets whose rows are few enough to be followed one by one to those underneath."""
    return not subject.is_iterable and 0 < (subject.num_samples or 0) <= MAX_FOLLOWED


def same_samples(drawn: Sequence[Drawn]) -> bool:
    """True if every rank gets the same samples, in whatever order."""
    first = sorted(map(str, drawn[0].ids))
    return all(sorted(map(str, one.ids)) == first for one in drawn[1:])


def _flag(holder: Any, name: str) -> bool | None:
    value = getattr(holder, name, None)
    return value if isinstance(value, bool) else None


def _paddings(holder: Any, num_rows: int | None) -> Iterator[Padding]:
    """Arithmetic of torch's DistributedSampler for the usual numbers of ranks."""
    is_torch = any(kind.__name__ == "DistributedSampler" for kind in type(holder).__mro__)
    if not is_torch or not num_rows:
        return
    drop_last = bool(getattr(holder, "drop_last", False))
    for size in USUAL:
        repeated = 0 if drop_last else -num_rows % size
        lost = num_rows % size if drop_last else 0
        if repeated or lost:
            yield Padding(world_size=size, num_repeated=repeated, num_lost=lost)


def _replaced(subject: Subject, built: Built) -> str | None:
    """A sampler that somebody chose for this data set in an earlier loader, and that this loader does not have."""
    if subject.loader is None or subject.is_iterable:
        return None
    kept = {id(one) for one in chain(subject.loader)}
    kept_kinds = {type(one) for one in chain(subject.loader)}
    others = {id(one.loader) for one in subject.siblings.values()}
    for loader, is_own in built.loaders:
        if not is_own or id(loader) in others or loader.dataset is not subject.loader.dataset:
            continue
        chosen = decider(loader)
        if chosen is not None and id(chosen) not in kept and type(chosen) not in kept_kinds and _is_choice(chosen):
            return told_class(chosen)
    return None


def _is_choice(sampler: Any) -> bool:
    """True for a sampler that says which samples come, and not only that they are shuffled or dealt out."""
    plain = {"SequentialSampler", "RandomSampler", "BatchSampler", "DistributedSampler"}
    return type(sampler).__name__ not in plain


def _init_name(subject: Subject) -> str | None:
    init = getattr(subject.loader, "worker_init_fn", None)
    inner = getattr(init, "func", init)
    return None if init is None else getattr(inner, "__qualname__", type(inner).__qualname__)


def plan_for(round_: Round, source: Source) -> PretendRanks:
    """The experiment with what the round knows."""
    wishes = round_.wishes
    return PretendRanks(
        spec=wishes.spec,
        split=round_.split,
        world_size=max(2, wishes.ranks),
        source=source,
        role=role_of(round_, source),
        walk_s=wishes.walk_s,
        max_streamed=wishes.max_streamed,
        seed=wishes.seed,
    )


class _Step:
    place = 320
    gives = (Ranks, RankSeeds)
    every_split = True

    def run(self, round_: Round) -> None:
        wishes = round_.wishes
        source = read_source(wishes.spec)
        if not (source.speaks_of_ranks or source.parallel_at or source.framework):
            round_.found.lacks(self.gives, "nothing in the source speaks of ranks")
            return
        if round_.facts.collate is None:
            round_.found.lacks(self.gives, "a bare data set has no sampler; give the loader")
            return
        experiment = plan_for(round_, source)
        round_.say("pretending to be each rank")
        records, ending = round_.ask(experiment)
        round_.found.note(experiment.name, ending, f"TARGET as each of {experiment.world_size} ranks would make it")
        for record in records:
            round_.found.add(record)
        reason = told(ending) or "the loader cannot be shown as another rank"
        round_.found.lacks([kind for kind in self.gives if kind not in round_.found.evidence], reason)


STEP = _Step()
