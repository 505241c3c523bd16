"""Walks the sampler of a loader for three epochs as the user's loop would: which samples, in which order and batches."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.orders import EpochCounts, EpochPass, Orders, Weights
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.order_draws import MAX_DRAWN, Drawn, adjacency, displacement, label_order, walk
from headrace.doctor.probes.sources import Source, read_source
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject
from headrace.doctor.subject.rebuild import rebuild
from headrace.doctor.subject.roots import cheap_labels
from headrace.doctor.subject.samplers import (
    chain,
    decider,
    draws,
    set_epoch_holders,
    told_class,
    told_place,
)

__all__ = ["STEP", "WalkSampler", "role_of"]

NUM_EPOCHS = 3
_EVALUATION = re.compile(r"(^|_)(val|valid|validation|test|eval|evaluation|dev|holdout|predict|infer)", re.IGNORECASE)
_TRAINING = re.compile(r"(^|_)(train|training|fit)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WalkSampler:
    """The experiment; yields Orders and EpochCounts. It draws from the loader's generators, as an epoch does."""

    name: ClassVar[str] = "orders"
    starts_processes: ClassVar[bool] = False

    source: Source
    role: Literal["train", "evaluation"] | None
    walk_s: float
    """Seconds for each walk."""
    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[Evidence]:
        """Walks the epochs, then once more with another epoch if the sampler can be told one."""
        loader = subject.loader
        sampler = _index_sampler(loader)
        if sampler is None:
            return  # a loader of another library: it has an order, and no sampler that could be walked
        bench.reseed(self.seed, "orders")
        holders = set_epoch_holders(loader)
        calls = [call for call in self.source.epoch_calls if call.for_evaluation == (self.role == "evaluation")]
        listeners = _listeners(loader, holders, [call.path for call in calls if not call.is_constant])
        drawn: list[Drawn] = []
        for epoch in range(NUM_EPOCHS):
            for listener in listeners:
                listener.set_epoch(epoch)
            drawn.append(walk(sampler, bench, self.walk_s))
            if not drawn[-1].is_complete and len(drawn[-1].ids) < MAX_DRAWN:
                break  # it is slow, or endless
        follows = self._follows_epoch(sampler, holders, bench) if len(drawn) == NUM_EPOCHS else None
        outer = decider(loader)
        rows = drawn[0].rows()
        is_sequential = rows is not None and len(rows) > 0 and bool((rows[1:] > rows[:-1]).all())
        constant = next((call.at for call in calls if call.is_constant), None)
        yield Orders(
            sampler=told_class(outer),
            sampler_at=told_place(outer),
            draws=_draws(loader),
            groups_batches=_groups_batches(loader),
            num_rows=subject.num_samples,
            batch_size=max(drawn[0].sizes, default=None),
            passes=tuple(one.told() for one in drawn),
            is_sequential=is_sequential,
            displacement=None if rows is None else displacement(rows.tolist()),
            adjacency=None if rows is None else adjacency(rows.tolist()),
            batches_are_even=drawn[0].is_even,
            labels=_labels(subject, drawn[0]),
            weights=_weights(subject, loader),
            set_epoch_of=told_class(holders[0]) if holders else None,
            epochs_told=bool(listeners),
            constant_epoch_at=constant,
            order_follows_epoch=follows,
            epoch_loop_at=self.source.epoch_loop_at,
            framework=self.source.framework,
            role=self.role,
        )
        yield EpochCounts(
            source=told_class(outer),
            source_at=told_place(outer),
            said_batches=subject.num_batches,
            single=self._counts(loader, drawn, bench),
            num_workers=subject.num_workers,
            batch_size=subject.batch_size,
            drop_last=subject.drop_last,
            resets_at=self.source.resets_at,
        )

    def _counts(self, loader: Any, drawn: Sequence[Drawn], bench: Bench) -> tuple[EpochPass, ...]:
        """Batches of each pass: those of the sampler, unless the loader's class makes something else of them."""
        if type(loader).__iter__ is _torch_iter(loader):
            return tuple(_counted(one) for one in drawn)
        twin = rebuild(loader, num_workers=0, collate_fn=_nothing)
        counted = []
        for _ in range(2):
            passed = walk(_ones(twin), bench, self.walk_s, stage="batches")
            counted.append(EpochPass(num_batches=len(passed.ids), num_samples=None, is_complete=passed.is_complete))
        return tuple(counted)

    def _follows_epoch(self, sampler: Any, holders: Sequence[Any], bench: Bench) -> bool | None:
        """Does `set_epoch` change the order? Two passes from the same random state, so that nothing else does."""
        if not holders:
            return None
        orders = []
        for epoch in (1, 2):
            for holder in holders:
                holder.set_epoch(epoch)
            bench.reseed(self.seed, "orders")
            orders.append(walk(sampler, bench, self.walk_s).told().order_hash)
        return orders[0] != orders[1]


def _torch_iter(loader: Any) -> Any:
    """`DataLoader.__iter__` of torch, for a class that inherits from it."""
    kinds = (kind for kind in type(loader).__mro__ if kind.__module__.startswith("torch.utils.data"))
    return getattr(next(kinds, type(loader)), "__iter__", None)


def _nothing(samples: Any) -> int:
    """In the place of collate: what the batch holds does not matter."""
    return 0 if samples is None else 1


def _ones(batches: Iterable[Any]) -> Iterator[int]:
    """One number per batch, to be counted."""
    for number, _ in enumerate(batches):
        yield number


def _index_sampler(loader: Any) -> Any:
    """What the loader draws from: the batch sampler, or the sampler if it does not make batches."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    return getattr(loader, "sampler", None) if batch_sampler is None else batch_sampler


def _listeners(loader: Any, holders: Sequence[Any], paths: Sequence[tuple[str, ...]]) -> list[Any]:
    """The objects that the source tells the epoch: followed from the loader where it does so, else all that listen."""
    found: list[Any] = []
    for path in paths:
        holder: Any = loader
        for name in path:
            holder = getattr(holder, name, None)
        if path and callable(getattr(holder, "set_epoch", None)):
            found.append(holder)
        elif not path:
            found += holders
    return list({id(one): one for one in found}.values())


def _draws(loader: Any) -> Literal["each-pass", "once", "never", "unknown"]:
    said = [draws(one) for one in chain(loader)]
    ranked: tuple[Literal["each-pass", "once", "unknown", "never"], ...] = ("each-pass", "once", "unknown", "never")
    return next((word for word in ranked if word in said), "unknown")


def _groups_batches(loader: Any) -> bool:
    """True if batches are made by something else than torch's plain BatchSampler."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    if batch_sampler is None:
        return False
    kind = type(batch_sampler)
    return kind.__iter__ is not _plain_batches(kind)


def _plain_batches(kind: type) -> Any:
    """`BatchSampler.__iter__` of torch, if the class inherits from it."""
    base = next((one for one in kind.__mro__ if one.__module__ == "torch.utils.data.sampler"), None)
    return getattr(base, "__iter__", None)


def _counted(one: Drawn) -> EpochPass:
    return EpochPass(num_batches=len(one.sizes) or len(one.ids), num_samples=len(one.ids), is_complete=one.is_complete)


def _labels(subject: Subject, drawn: Drawn) -> Any:
    rows = drawn.rows()
    if rows is None or not len(rows):
        return None
    labels = cheap_labels(subject.dataset)
    if labels is None or rows.min() < 0 or rows.max() >= len(labels):
        return None
    return label_order(labels[rows], drawn.sizes)


def _weights(subject: Subject, loader: Any) -> Weights | None:
    """The weights of a sampler that has some, and which classes they leave out."""
    import numpy as np

    for one in chain(loader):
        weights, count = getattr(one, "weights", None), getattr(one, "num_samples", None)
        if weights is None or not isinstance(count, int):
            continue
        values = _numbers(weights)
        if values is None:
            continue
        labels = cheap_labels(subject.dataset)
        never: tuple[str, ...] = ()
        if labels is not None and len(labels) == len(values):
            never = tuple(str(label) for label in np.unique(labels).tolist() if not values[labels == label].any())
        replacement = getattr(one, "replacement", None)
        return Weights(
            num_weights=len(values),
            num_draws=count,
            replacement=replacement if isinstance(replacement, bool) else None,
            num_labels=None if labels is None else len(np.unique(labels)),
            never_drawn=_named(subject, never),
            is_uniform=len(values) > 1 and bool((values == values[0]).all()),
        )
    return None


def _numbers(weights: Any) -> Any:
    """A flat array of weights; None: they are of a kind of their own."""
    import numpy as np

    try:
        values = np.asarray(weights, float)
    except Exception:
        return None
    return values if values.ndim == 1 else None


def _named(subject: Subject, numbers: tuple[str, ...]) -> tuple[str, ...]:
    classes = getattr(subject.dataset, "classes", None)
    if not isinstance(classes, (list, tuple)) or len(classes) <= max(map(int, numbers), default=0):
        return numbers
    return tuple(str(classes[int(number)]) for number in numbers)


def role_of(round_: Round, source: Source) -> Literal["train", "evaluation"] | None:
    """What a loader is for: its own word, its name in TARGET, or a file that trains on its only loader."""
    name = round_.split or round_.wishes.spec.rpartition(":")[2].rpartition(".")[2]
    # A lone loader that shuffles is taken for a training loader, unless its name says otherwise.
    if _TRAINING.search(name) and not _EVALUATION.search(name):
        return "train"
    if _EVALUATION.search(name) and not _TRAINING.search(name):
        return "evaluation"
    if round_.facts.role is not None:
        return round_.facts.role
    return "train" if source.trains_at and source.num_loaders == 1 else None


class _Step:
    place = 300
    gives = (Orders, EpochCounts)
    every_split = True

    def run(self, round_: Round) -> None:
        kinds = (Orders, EpochCounts)
        facts = round_.facts
        if facts.is_iterable:
            return  # a stream has no sampler: experiments/epochs.py walks it
        if facts.num_batches is None and facts.collate is None:
            round_.found.lacks(kinds, "a bare data set has no sampler; give the loader")
            return
        source = read_source(round_.wishes.spec)
        experiment = WalkSampler(
            source=source,
            role=role_of(round_, source),
            walk_s=round_.wishes.walk_s / NUM_EPOCHS,
            seed=round_.wishes.seed,
        )
        round_.say("walking the sampler")
        records, ending = round_.ask(experiment)
        round_.found.note(experiment.name, ending, f"{NUM_EPOCHS} epochs of the sampler, no sample read")
        for record in records:
            round_.found.add(record)
        lacking = [kind for kind in kinds if kind not in round_.found.evidence]
        reason = told(ending) or "the loader has none that can be walked"
        round_.found.lacks(lacking, f"the sampler was not walked: {reason}")


STEP = _Step()
