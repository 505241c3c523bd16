"""Reads samples again in one process, with every random generator that can be seen set back to where it was.

    read, seed X ─▶ snapshot ─▶ read, seed X ─▶ read, seeds Y1 Y2 Y3 ─▶ read, seed X
                                     └────────────── equal? ─────────────────┘
                     no: put back what the snapshot says was changed, read once more: is it itself again?

Only a sample that comes back when something is put back was changed through it. A sample that merely differs may come
from a generator inside a native library, from the clock, or from the operating system, and proves nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from headrace.doctor.evidence.repeats import ChangedPart, Repeats, SampleRepeat
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.content import Content, content_of
from headrace.doctor.probes.draws import Seeding, draws_in, functions_run, heard_seeding
from headrace.doctor.probes.generators import global_states
from headrace.doctor.probes.held_state import Change, HeldState
from headrace.doctor.probes.roots import roots_of, sample_keys
from headrace.doctor.round import Round
from headrace.doctor.stacks import innermost_at
from headrace.doctor.subject import Subject

__all__ = ["STEP", "RepeatReads"]

NUM_SEEDS = 3
"""Readings under seeds of their own: a flip with a chance of one half leaves a sample equal in all of them once in eight,
in all six samples hardly ever."""
MAX_CHANGES = 8
"""Changed things that are named."""
_EVALUATION = frozenset({"val", "valid", "validation", "test", "testing", "eval", "evaluation", "dev"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RepeatReads:
    """The experiment; yields one Repeats."""

    name: ClassVar[str] = "reading again"
    starts_processes: ClassVar[bool] = False

    indices: Sequence[int]
    seed: int
    limit_s: float
    """No further sample is begun after this."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Repeats]:
        """Reads one sample after another; at least one."""
        first, later = set[types.CodeType](), set[types.CodeType]()
        samples, holds_records = list[SampleRepeat](), False
        deadline = time.monotonic() + self.limit_s
        for index in self.indices:
            one = _OneSample(subject, bench, index, self.seed, first, later)
            samples.append(one.repeat())
            holds_records |= one.holds_records
            if time.monotonic() > deadline:
                break
        draws = draws_in(first | later)
        yield Repeats(
            samples=tuple(samples),
            holds_records=holds_records,
            draws=draws.places,
            draws_later=draws_in(later).places,
            constant_generators=draws.constant_makers,
            is_evaluation=_is_evaluation(subject.dataset),
        )


class _Failed(Exception):
    """A reading raised; the cause says what."""


class _OneSample:
    """One sample and its readings."""

    def __init__(
        self,
        subject: Subject,
        bench: Bench,
        index: int,
        seed: int,
        first: set[types.CodeType],
        later: set[types.CodeType],
    ) -> None:
        self._subject, self._bench, self._index, self._seed = subject, bench, index, seed
        self._codes, self._later_codes = first, later
        self._id = subject.sample_id(index)
        self._drawn: list[str] = []
        self._seedings: list[Seeding] = []
        self.holds_records = False

    def repeat(self) -> SampleRepeat:
        """Reads it until it is known what it is."""
        untouched = self._snapshot()
        states = untouched.generator_states()
        try:
            first = self._read(untouched)
        except _Failed:
            return SampleRepeat(index=self._index, sample_id=self._id, outcome="unreadable")
        drawn_first, self._drawn, self._codes = tuple(self._drawn), [], self._later_codes
        self.holds_records |= bool(self._bench.opened) or untouched.holds_records
        known = self._snapshot()
        self.holds_records |= known.holds_records
        states = {**known.generator_states(), **states}
        try:
            again = self._read(known, states)
            others = [self._read(known, part=f"other {number}") for number in range(NUM_SEEDS)]
            last = self._read(known, states)
        except _Failed as failure:
            return self._failing(untouched, states, first, failure)
        found = SampleRepeat(
            index=self._index,
            sample_id=self._id,
            outcome="equal",
            drawn_first=drawn_first,
            drawn_later=tuple(dict.fromkeys(self._drawn)),
            num_seeds=NUM_SEEDS,
            is_same_under_seeds=_is_same(again, others, last),
            seedings=tuple(dict.fromkeys(f"{one.call} at {one.at}" for one in self._seedings)),
        )
        found = self._judged(found, known, states, again, last)
        # Generators that the first reading made were not there to be set back: it may differ for that reason alone.
        if not found.changed and set(known.generators) <= set(untouched.generators):
            found = self._judged(found, untouched, states, first, again)
        return found

    def _judged(
        self, found: SampleRepeat, snapshot: HeldState, states: Mapping[str, Any], earlier: Content, later: Content
    ) -> SampleRepeat:
        """Says which fields of two readings differ, and whether what the snapshot kept is the cause."""
        fields = earlier.differing(later)
        if not fields:
            return found
        changes = _telling(snapshot.changes())
        proven: tuple[str, ...] = ()
        with contextlib.suppress(_Failed):
            proven = self._come_back(fields, earlier, snapshot, states) if changes else ()
            if len(changes) > 1:  # not everything that was changed has to do with it
                alone = [
                    change
                    for change in changes
                    if self._come_back(proven, earlier, snapshot, states, only=change.path) == proven != ()
                ]
                changes = alone or changes
        means = [content.mean((proven or fields)[0]) for content in (earlier, later)]
        return dataclasses.replace(
            found,
            outcome="differs",
            fields=proven or fields,
            changed=tuple(map(_part, changes)) if proven else (),
            means=(means[0], means[1]) if means[0] is not None and means[1] is not None else None,
        )

    def _come_back(
        self,
        fields: tuple[str, ...],
        earlier: Content,
        snapshot: HeldState,
        states: Mapping[str, Any],
        only: str | None = None,
    ) -> tuple[str, ...]:
        """Puts back all that was changed, or one thing of it, and reads; returns the fields that are as they were."""
        snapshot.restore(only)
        differing = earlier.differing(self._read(snapshot, states))
        return tuple(field for field in fields if field not in differing)

    def _failing(
        self, untouched: HeldState, states: Mapping[str, Any], first: Content, failure: _Failed
    ) -> SampleRepeat:
        """A sample that can be read once only; proven if it can be read again when things are put back."""
        error = failure.__cause__
        changes = _telling(untouched.changes())
        untouched.restore()
        is_back = False
        with contextlib.suppress(_Failed):
            is_back = not first.differing(self._read(untouched, states))
        return SampleRepeat(
            index=self._index,
            sample_id=self._id,
            outcome="fails",
            changed=tuple(map(_part, changes)) if is_back else (),
            error=f"{type(error).__name__}: {error}".partition("\n")[0][:200],
            error_at=None if error is None else innermost_at(error),
        )

    def _snapshot(self) -> HeldState:
        return HeldState(
            roots_of(self._subject),
            keys=sample_keys(self._subject, self._index),
            num_samples=self._subject.num_samples,
        )

    def _read(self, snapshot: HeldState, states: Mapping[str, Any] | None = None, *, part: str = "again") -> Content:
        """Reads once. With `states`, the generators that the data set holds are set back before; else they go on."""
        subject, bench = self._subject, self._bench
        with bench.holding(self._index, self._id, path=subject.locate(self._index)):
            bench.reseed(self._seed, self._index, part)
            if states is not None:
                snapshot.set_generators(states)
            before, own = global_states(), _comparable(snapshot.generator_states())
            try:
                with heard_seeding(self._seedings), functions_run(self._codes):
                    sample = subject.read(self._index, bench.enter)
            except BaseException as error:
                raise _Failed from error
            bench.stop_listening()
            after, own_after = global_states(), _comparable(snapshot.generator_states())
            self._drawn += [name for name in after if after[name] != before.get(name, after[name])]
            self._drawn += [path for path in own_after if own_after[path] != own.get(path)]
            return content_of(sample)


def _is_same(again: Content, others: Sequence[Content], last: Content) -> bool:
    """True if readings under other seeds gave the same, byte for byte.

    A number or a text that is new at each reading, whatever the seed, is the time or the name of a request, and says
    nothing about the data beside it.
    """
    stamps = set(again.differing(last)) & again.labels

    def told(content: Content) -> dict[str, str | None]:
        return {field: digest for field, digest in content.digests.items() if field not in stamps}

    kept = told(again)
    return bool(kept) and None not in kept.values() and all(kept == told(other) for other in others)


def _comparable(states: Mapping[str, Any]) -> dict[str, str]:
    """States hold arrays, tensors, tuples: their texts are compared, in full."""
    return {path: _text(state) for path, state in states.items()}


def _text(state: Any) -> str:
    if isinstance(state, Mapping):
        return str([(name, _text(value)) for name, value in state.items()])
    if isinstance(state, (tuple, list)) and not all(isinstance(part, int) for part in state):
        return str([_text(part) for part in state])
    return str(state.tolist()) if hasattr(state, "tolist") else str(state)


def _telling(changes: Sequence[Change]) -> list[Change]:
    """The store of the sample first; of one path one change."""
    ranked = sorted(changes, key=lambda change: (not change.is_of_sample, change.kind != "content"))
    return list({change.path: change for change in ranked}.values())[:MAX_CHANGES]


def _part(change: Change) -> ChangedPart:
    return ChangedPart(path=change.path, kind=change.kind, is_of_sample=change.is_of_sample)


def _is_evaluation(dataset: Any) -> bool:
    """What the data set, or the one inside it, says of itself."""
    for _ in range(4):
        attributes = getattr(dataset, "__dict__", {})
        if any(attributes.get(name) is False for name in ("train", "training", "is_train", "augment")):
            return True
        if any(str(attributes.get(name)).lower() in _EVALUATION for name in ("split", "mode", "phase", "subset")):
            return True
        dataset = attributes.get("dataset")
    return False


class _RepeatStep:
    """Reads a few samples again, in a child that has read none: the first reading counts too."""

    place = 110
    gives = (Repeats,)
    every_split = True

    def run(self, round_: Round) -> None:
        """Takes samples that came out before, and some that no probe has read: a cache on disk does not know those."""
        if round_.facts.is_iterable or not round_.facts.num_samples:
            round_.found.lacks([Repeats], "the data set is a stream: a sample cannot be asked for again")
            return
        wishes = round_.wishes
        indices = _choose(round_, 3 if wishes.quick else 6)
        if not indices:
            round_.found.lacks([Repeats], "no readable sample was found to read again")
            return
        limit_s = min(wishes.walk_s / 2, round_.left_s / 4)
        round_.gather(RepeatReads(indices=indices, seed=wishes.seed, limit_s=limit_s), Repeats, alone=True)


def _choose(round_: Round, limit: int) -> list[int]:
    tried = {one.read.index for one in round_.prepared}
    readable = [one.read.index for one in round_.prepared if one.read.outcome == "ok"]
    if not readable:
        return [] if tried else list(range(min(limit, round_.facts.num_samples or 0)))
    middle = readable[len(readable) // 2]
    size = round_.facts.num_samples or 0
    fresh = [row for row in range(size // 3, min(size, size // 3 + 200)) if row not in tried]
    chosen = dict.fromkeys([readable[0], *fresh[: limit // 2], middle, readable[-1], *readable])
    return sorted(list(chosen)[:limit])


STEP = _RepeatStep()
