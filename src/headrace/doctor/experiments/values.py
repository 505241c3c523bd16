"""Prepares samples that hold NaN or infinity once more, and listens for the operation that gives it."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from headrace.contract.view import as_array, flatten
from headrace.doctor.evidence import CollateTrial, SampleReads
from headrace.doctor.evidence.values import NonFiniteField, NonFiniteValues
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.held_state import HeldState
from headrace.doctor.probes.origins import Origin, heard_origins
from headrace.doctor.probes.roots import roots_of, sample_keys
from headrace.doctor.questions.samples import grouped
from headrace.doctor.round import Round, told
from headrace.doctor.subject import Subject
from headrace.errors import SampleId

__all__ = ["STEP", "FindOrigins"]

MAX_TRACED = 6
"""Samples that are prepared once more for each field."""
MAX_STREAMED = 64
"""Samples of a stream that are looked at."""
_TELLING = ("mask", "valid", "observed", "missing", "weight")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """One field of one sample that is not finite."""

    field: NonFiniteField
    index: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FindOrigins:
    """The experiment; yields a NonFiniteField for each such field of each sample, at the end the number of samples."""

    name: ClassVar[str] = "origins of values"
    starts_processes: ClassVar[bool] = False

    indices: Sequence[int] | None
    """Rows to prepare; None: the beginning of a stream."""
    seed: int
    limit_s: float

    def run(self, subject: Subject, bench: Bench) -> Iterator[_Traced | int]:
        """One sample after another, until time is up."""
        deadline, num = time.monotonic() + self.limit_s, 0
        rows: Iterator[int] = iter(itertools.count() if self.indices is None else self.indices)
        stream = iter(subject.dataset) if self.indices is None else None
        bench.reseed(self.seed, "values")
        for index in rows:
            if time.monotonic() > deadline or (stream is not None and num == MAX_STREAMED):
                break
            origins: list[Origin] = []
            sample_id = index if stream is not None else subject.sample_id(index)
            with bench.holding(index, sample_id, stage="read"):
                if stream is None:
                    bench.reseed(self.seed, index)  # as the reads probe did: the same sample comes out
                try:
                    with heard_origins(origins):
                        sample = subject.read(index, bench.enter) if stream is None else next(stream)
                except Exception:  # the end of a stream, or what others report
                    if stream is not None:
                        break
                    continue
                bench.stop_listening()
                num += 1
                yield from self._trace(subject, bench, index, sample_id, sample, origins)
        yield num

    def _trace(
        self, subject: Subject, bench: Bench, index: int, sample_id: SampleId, sample: Any, origins: Sequence[Origin]
    ) -> Iterator[_Traced]:
        leaves = [(name, array) for name, value in flatten(sample) if (array := as_array(value)) is not None]
        for name, array in leaves:
            if array.dtype.kind != "f" or np.isfinite(array).all():
                continue
            where, detail, origin = self._origin(subject, bench, index, origins)
            yield _Traced(
                index=index,
                field=NonFiniteField(
                    field=name,
                    kind=_kind(array),
                    num_values=int((~np.isfinite(array)).sum()),
                    sample_ids=(sample_id,),
                    origin=origin,
                    where=where,
                    detail=detail,
                    is_single=array.ndim == 0,
                    is_declared=_is_attention_mask(array) or _has_mask(name, array, sample, leaves),
                ),
            )

    def _origin(
        self, subject: Subject, bench: Bench, index: int, origins: Sequence[Origin]
    ) -> tuple[str | None, str, Literal["computed", "stored", "file", "unknown"]]:
        if origins:
            return origins[0].where, origins[0].code, "computed"
        keys = sample_keys(subject, index) if self.indices is not None else ()
        held = HeldState(roots_of(subject), keys=keys, num_samples=subject.num_samples).non_finite()
        stored = sorted(held, key=lambda one: not one[1])
        if stored:
            return stored[0][0], "", "stored"
        return (bench.opened[0], "", "file") if bench.opened else (None, "", "unknown")


def _kind(array: npt.NDArray[Any]) -> Literal["NaN", "infinity", "NaN and infinity"]:
    has_nan, has_inf = bool(np.isnan(array).any()), bool(np.isinf(array).any())
    return "NaN and infinity" if has_nan and has_inf else "NaN" if has_nan else "infinity"


def _is_attention_mask(array: npt.NDArray[Any]) -> bool:
    """Only 0 and -infinity: what is added to attention scores."""
    zeros = array == 0
    return array.ndim > 0 and bool(zeros.any() and (zeros | np.isneginf(array)).all())


def _has_mask(name: str, array: npt.NDArray[Any], sample: Any, leaves: Sequence[tuple[str, npt.NDArray[Any]]]) -> bool:
    """True if another field says which values are there: by its values, or by its name."""
    there = np.isfinite(array)
    for other, values in leaves:
        if other == name:
            continue
        if values.shape == there.shape and values.ndim and np.isin(values, (0, 1)).all():
            flags = values.astype(bool)
            if np.array_equal(flags, there) or np.array_equal(flags, ~there):
                return True
    return any(word in other.lower() for other, _ in flatten(sample) if other != name for word in _TELLING)


class _ValueStep:
    """Looks for the origin of what the reads probe saw, or looks at the beginning of a stream."""

    place = 130
    gives = (NonFiniteValues,)
    every_split = True

    def run(self, round_: Round) -> None:
        """Runs nothing if all values of all samples are finite."""
        found, wishes = round_.found, round_.wishes
        suspects = [
            one.read.index for one in round_.prepared if any(view.num_nan or view.num_inf for view in one.read.fields)
        ]
        is_stream = round_.facts.is_iterable
        if not round_.prepared and not is_stream:
            found.lacks([NonFiniteValues], "no sample came out")
            return
        records: list[Any] = []
        num_examined = sum(one.read.outcome == "ok" for one in round_.prepared)
        if suspects or is_stream:
            round_.say(FindOrigins.name)
            limit_s = min(wishes.walk_s / 2, round_.left_s / 4)
            indices = None if is_stream else tuple(suspects[:MAX_TRACED])
            records, ending = round_.ask(
                FindOrigins(indices=indices, seed=wishes.seed, limit_s=limit_s), alone=bool(suspects)
            )
            found.note(FindOrigins.name, ending)
            if is_stream:
                num_examined = next((record for record in records if isinstance(record, int)), 0)
                if not num_examined:
                    found.lacks([NonFiniteValues], told(ending) or "the stream yielded nothing")
                    return
        traced = [record for record in records if isinstance(record, _Traced)]
        fields = [*_merged(traced, round_), *_of_batch(round_, suspects)]
        found.add(NonFiniteValues(num_examined=num_examined, fields=tuple(fields)))


def _merged(traced: Sequence[_Traced], round_: Round) -> list[NonFiniteField]:
    """One record for each field and origin, with all samples in which the reads probe saw it."""
    reads = round_.found.evidence.get(SampleReads)
    targets = reads.target_fields if isinstance(reads, SampleReads) else ()
    groups = grouped(((one.field.field, one.field.origin, one.field.is_declared), one) for one in traced)
    merged = []
    for (field, _, _), members in groups.items():
        known = {one.index for one in members}
        others = [
            one.read
            for one in round_.prepared
            if one.read.index not in {other.index for other in traced}
            and any(view.field == field and (view.num_nan or view.num_inf) for view in one.read.fields)
        ]
        # What was not traced is counted with the first group of its field.
        is_first = next(key for key in groups if key[0] == field) == (
            field,
            members[0].field.origin,
            members[0].field.is_declared,
        )
        extra = [read for read in others if read.index not in known] if is_first else []
        more = sum(view.num_nan + view.num_inf for read in extra for view in read.fields if view.field == field)
        ids = [one.field.sample_ids[0] for one in members] + [read.sample_id for read in extra]
        merged.append(
            dataclasses.replace(
                members[0].field,
                sample_ids=tuple(ids),
                num_values=sum(one.field.num_values for one in members) + more,
                is_target=field in targets,
            )
        )
    return merged


def _of_batch(round_: Round, suspects: Sequence[int]) -> list[NonFiniteField]:
    """Fields of the batch that are not finite though all its samples are."""
    trial = round_.found.evidence.get(CollateTrial)
    if suspects or not isinstance(trial, CollateTrial):
        return []
    return [
        NonFiniteField(
            field=view.field,
            kind="NaN and infinity" if view.num_nan and view.num_inf else "NaN" if view.num_nan else "infinity",
            num_values=view.num_nan + view.num_inf,
            sample_ids=trial.sample_ids,
            origin="collate",
            where=trial.collate,
            # Lines of 0 and -infinity are how attention takes its padding mask.
            is_declared=view.num_nan == 0 and view.minimum == view.maximum == 0,
        )
        for view in trial.batch_fields
        if view.num_nan or view.num_inf
    ]


STEP = _ValueStep()
