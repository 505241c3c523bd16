"""Which fields of a sample are random, and which are targets: by reading samples several times in one process."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from headrace.contract.view import ValueView
from headrace.doctor.evidence import SampleRead
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.reads import view_fields
from headrace.doctor.probes.targets import find_targets
from headrace.doctor.sameness.passport import Epoch, Fields, Traits
from headrace.doctor.subject import Subject
from headrace.doctor.walks.field_digests import exact_digests
from headrace.doctor.walks.generators import held_generators, set_back

__all__ = ["FindTraits", "traits_of_walks"]

NUM_VIEWED = 16
"""Samples whose fields are looked at for targets."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FindTraits:
    """The experiment; yields one Traits. The data set has row numbers."""

    name: ClassVar[str] = "fields"
    starts_processes: ClassVar[bool] = True

    rows: tuple[int, ...]
    num_seeds: int = 3
    """Different seeds under which each row is read; under the first one twice."""
    most_s: float = 4.0

    def run(self, subject: Subject, bench: Bench) -> Iterator[Traits]:
        """Rows that cannot be read are left out."""
        reads: list[list[Fields]] = []
        views = []
        deadline = time.monotonic() + self.most_s
        with contextlib.suppress(Exception):  # what a data set makes with its first sample is made then
            self._read(subject, bench, self.rows[0], 0)
        for row in self.rows:
            if reads and time.monotonic() > deadline:
                break
            with contextlib.suppress(Exception):  # what becomes of it is seen in the delivery
                found: list[Fields] = []
                for seed in [1, *range(1, self.num_seeds + 1)]:
                    sample = self._read(subject, bench, row, seed)
                    found.append(exact_digests(sample))
                views.append(_viewed(row, sample))
                reads.append(found)
        contract = subject.contract
        targets = tuple(field.name for field in (contract.fields if contract else ()) if field.role == "target")
        knows_classes = subject.classes() is not None
        yield Traits(
            rates=_rates([one[1:] for one in reads]),
            unseeded=frozenset(field for field, rate in _rates([one[:2] for one in reads]).items() if rate),
            targets=targets or find_targets(views, knows_classes=knows_classes),
            num_samples=len(reads),
        )

    @staticmethod
    def _read(subject: Subject, bench: Bench, row: int, seed: int) -> Any:
        with bench.holding(row, subject.sample_id(row)):
            bench.reseed(seed, "fields", row)
            for generator in held_generators(subject.dataset):
                set_back(generator, seed)
            sample = subject.read(row, bench.enter, seed=seed)
            bench.stop_listening()
        return sample


def _viewed(row: int, sample: Any) -> SampleRead:
    return SampleRead(index=row, sample_id=row, path=None, outcome="ok", stage="done", fields=view_fields(sample))


def _rates(reads: Sequence[Sequence[Fields]]) -> dict[str, float]:
    """Field -> share of samples of which two reads differ."""
    differ: collections.Counter[str] = collections.Counter()
    fields = dict.fromkeys(field for found in reads for one in found for field in one)
    for found in reads:
        differ.update(field for field in fields if len({one.get(field) for one in found}) > 1)
    return {field: differ[field] / len(reads) for field in fields}


def traits_of_walks(one: Epoch, other: Epoch) -> Traits:
    """Returns the traits of a loader without row numbers, from two passes under different seeds.

    A field is fixed if both passes had the same values of it, each as often. Which fields are targets is told by names.
    """
    counted = [_values(epoch) for epoch in (one, other)]
    fields = dict.fromkeys([*counted[0], *counted[1]])
    rates = {}
    for field in fields:
        a, b = (values.get(field, collections.Counter()) for values in counted)
        rates[field] = (a - b).total() / max(1, a.total())
        if a != b and not rates[field]:
            rates[field] = 1.0
    views = [_viewed_form(sample.fields) for sample in one.samples[:NUM_VIEWED] if sample.fields]
    return Traits(rates=rates, targets=find_targets(views, knows_classes=False), num_samples=len(one.samples))


def _viewed_form(fields: Fields) -> SampleRead:
    """A sample as far as the form of its fields tells, `int64[]` or `float32[3, 8, 8]`."""
    views = []
    for field, value in fields.items():
        form = (value or "").partition(":")[0]
        name, bracket, shape = form.partition("[")
        sizes = tuple(int(size) for size in shape.rstrip("]").split(",") if size.strip()) if bracket else None
        views.append(ValueView(field=field, kind="array" if bracket else name, dtype=name, shape=sizes))
    return SampleRead(index=0, sample_id=0, path=None, outcome="ok", stage="done", fields=tuple(views))


def _values(epoch: Epoch) -> Mapping[str, collections.Counter[str | None]]:
    found: dict[str, collections.Counter[str | None]] = collections.defaultdict(collections.Counter)
    for sample in epoch.samples:
        for field, value in (sample.fields or {}).items():
            found[field][value] += 1
    return found
