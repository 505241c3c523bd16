"""Joins chosen samples by the loader's own collate function: single access that works does not prove that they join."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

from headrace.contract.view import ValueView, view_sample
from headrace.doctor.evidence import CollateTrial, SampleRead, Violation
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import Ending, Experiment, Lab
from headrace.doctor.probes.contracts import ContractProbe
from headrace.doctor.stacks import innermost_at
from headrace.doctor.subject import Subject
from headrace.errors import SampleId

__all__ = ["JoinSamples", "Joined", "choose_samples", "find_odd", "form_of", "join", "try_collation"]

MAX_SAMPLES = 8
"""Enough to show what does not fit; each failing sample is tried again in a pair."""
MANY_SIZES = 3
"""More sizes of one axis than that are lengths; fewer may be a fault."""

MESSAGE_CHARS = 300
"""As for single samples."""

Collate = Callable[[list[Any]], Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What came of joining."""

    trial: CollateTrial
    wall_s: float
    """Seconds that joining all of them took."""
    violations: tuple[Violation, ...] = ()
    """What breaks the contract in the batch, if there is one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JoinSamples:
    """The experiment; yields one Joined, or nothing if no sample can be read any more."""

    name: ClassVar[str] = "collation"
    starts_processes: ClassVar[bool] = False

    indices: tuple[int, ...]
    """Rows to join; a loader that hands over single samples converts the one there is."""
    seed: int
    contract: str | None = None
    """Path of a contract file."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Joined]:
        """Prepares the samples once more, then joins them."""
        function = subject.collate()  # may import torch: no deadline runs yet
        yield from join(function, list(self._prepare(subject, bench)), subject, bench, self.seed, self.contract)

    def _prepare(self, subject: Subject, bench: Bench) -> Iterator[tuple[SampleId, Any]]:
        """Yields (id, sample); one that fails now, although it was readable before, is left out."""
        for index in self.indices:
            sample_id = subject.sample_id(index)
            with bench.holding(index, sample_id, path=subject.locate(index)):
                bench.reseed(self.seed, index)
                try:
                    sample = subject.read(index, bench.enter)
                except Exception:  # noqa: S112 - the reads probe has reported what it saw; this is about joining
                    continue
            yield sample_id, sample


def join(
    function: Collate,
    prepared: Sequence[tuple[SampleId, Any]],
    subject: Subject,
    bench: Bench,
    seed: int,
    contract: str | None,
) -> Iterator[Joined]:
    """Joins samples, each with its id, as the loader does; yields one Joined, or nothing if there are no samples."""
    collate: Collate = function if subject.joins_samples else lambda samples: function(samples[0])
    if not prepared:
        return
    ids = tuple(sample_id for sample_id, _ in prepared)
    samples = [sample for _, sample in prepared]
    with bench.holding(None, None, stage="collate"):
        bench.reseed(seed, "collate")
        batch, error = _attempt(collate, samples)
    trial = CollateTrial(
        collate=subject.collate_name,
        is_default=subject.has_default_collate,
        sample_ids=ids,
        succeeded=error is None,
    )
    wall_s = bench.stage_s["collate"]
    if error is None:
        trial = dataclasses.replace(trial, batch_fields=view_sample(batch))
        probe = ContractProbe(subject, contract)
        violations = probe.batch(batch, ids) if subject.joins_samples else ()
        yield Joined(trial=trial, wall_s=wall_s, violations=violations)
        return
    odd = find_odd(collate, samples, bench)
    trial = dataclasses.replace(
        trial,
        error_type=type(error).__name__,
        error_message=str(error).partition("\n")[0][:MESSAGE_CHARS],
        error_at=None if trial.is_default else innermost_at(error),  # a line of torch's would lead nowhere
        odd_ids=tuple(ids[place] for place in odd),
    )
    yield Joined(trial=trial, wall_s=wall_s)


def _attempt(collate: Collate, samples: Sequence[Any]) -> tuple[Any, BaseException | None]:
    """Returns the batch, or why there is none. A collate function may change its samples: it gets copies."""
    try:
        return collate([_copied(sample) for sample in samples]), None
    except BaseException as error:  # also sys.exit()
        return None, error


def _copied(sample: Any) -> Any:
    try:
        return copy.deepcopy(sample)
    except Exception:  # what cannot be copied is joined as it is
        return sample


def find_odd(collate: Collate, samples: Sequence[Any], bench: Bench) -> list[int]:
    """Returns the places of the samples that do not join, each tried alone, then in a pair with a reference.

    The reference is the first sample, unless more than half do not join with it: then it is the odd one itself, and
    the first that does not join with it takes its place. Empty if not even single samples join, or if all pairs do.
    """

    def fits(*places: int) -> bool:
        with bench.holding(None, None, stage="collate"):
            return _attempt(collate, [samples[place] for place in places])[1] is None

    alone = [place for place in range(len(samples)) if fits(place)]
    if len(alone) < 2:
        # One sample joins only with itself, so nothing is known of the others but that they do not.
        return [place for place in range(len(samples)) if place not in alone] if alone else []
    unfit = set(range(len(samples))) - set(alone)
    reference, others = alone[0], alone[1:]
    apart = [place for place in others if not fits(reference, place)]
    if 2 * len(apart) > len(others):
        reference = apart[0]
        apart = [place for place in alone if place != reference and not fits(reference, place)]
    return sorted(unfit | set(apart))


def form_of(fields: Iterable[ValueView]) -> tuple[Any, ...]:
    """Returns what decides whether samples join: fields, kinds, dtypes, shapes."""
    return tuple((view.field, view.kind, view.dtype, view.shape) for view in fields)


def choose_samples(reads: Sequence[SampleRead], batch_size: int | None) -> tuple[int, ...]:
    """Returns the rows to join: at most a batch (None: of unknown size), at most 8, in data set order.

    One of each kind that was seen (shapes and dtypes) comes first, so that what does not fit meets the others; then
    the first and the last; then the following. Of kinds, those come first that differ otherwise than by an axis that
    has many sizes, such as the number of words or of nodes.
    """
    limit = min(batch_size or MAX_SAMPLES, MAX_SAMPLES)
    readable = [read for read in reads if read.outcome == "ok"]
    kinds: dict[tuple[Any, ...], int] = {}
    varied = _varied_axes(readable)
    for read in readable:
        kinds.setdefault(_coarse_form(read.fields, varied), read.index)
    for read in readable:
        kinds.setdefault(form_of(read.fields), read.index)
    edges = [read.index for read in (readable[:1] + readable[-1:])]
    ranked = dict.fromkeys([*kinds.values(), *edges, *(read.index for read in readable)])
    return tuple(sorted(list(ranked)[:limit]))


def _varied_axes(reads: Sequence[SampleRead]) -> set[tuple[str, int]]:
    sizes: dict[tuple[str, int], set[int]] = {}
    for read in reads:
        for view in read.fields:
            for axis, size in enumerate(view.shape or ()):
                sizes.setdefault((view.field, axis), set()).add(size)
    return {place for place, found in sizes.items() if len(found) > MANY_SIZES}


def _coarse_form(fields: Sequence[ValueView], varied: Collection[tuple[str, int]]) -> tuple[Any, ...]:
    def coarse(view: ValueView) -> tuple[int | None, ...] | None:
        if view.shape is None:
            return None
        return tuple(None if (view.field, axis) in varied else size for axis, size in enumerate(view.shape))

    return ("coarse", *((view.field, view.kind, view.dtype, coarse(view)) for view in fields))


class Joining(Experiment, Protocol):
    """An experiment that joins the samples at some places."""

    @property
    def indices(self) -> tuple[int, ...]:
        """Rows, or places in a pass."""
        ...


def try_collation(lab: Lab, experiment: Joining, *, collate: str, is_default: bool) -> tuple[Joined | None, Ending]:
    """Runs the experiment; a collate function that hangs or ends the interpreter has failed like any other."""
    found: list[Joined] = []
    ending = lab.run(experiment, found.append)
    if found:
        return found[0], ending
    is_collate = ending.mark is not None and ending.mark.stage == "collate"
    if ending.outcome not in {"stuck", "crashed"} or not is_collate:
        return None, ending
    trial = CollateTrial(
        collate=collate,
        is_default=is_default,
        sample_ids=experiment.indices,
        succeeded=False,
        error_type=ending.cause or "stuck",
        error_message="the interpreter ended" if ending.outcome == "crashed" else "no answer before the deadline",
        error_at=ending.at,
    )
    return Joined(trial=trial, wall_s=ending.mark_s), ending
