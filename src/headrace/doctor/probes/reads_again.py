"""Reads samples that failed again, in the same process: does it always fail, or now and then?"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.reads import Prepared
from headrace.doctor.subject import Subject

__all__ = ["MAX_READ_AGAIN", "ReadAgain", "ReadFailuresAgain", "with_readings_again"]

MAX_READ_AGAIN = 8
"""Samples that are read again: if more fail, the first ones speak for them."""
NUM_OWN, NUM_OTHER = 3, 9
"""Readings under the seed that it failed with, and under others. What fails by chance once in four readings comes out in
one of twelve, all but always."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadAgain:
    """What came of one sample."""

    index: int
    own: tuple[bool, ...]
    """For each reading under the seed that it failed with: whether it raised."""
    other: tuple[bool, ...]
    """The same under other seeds."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailuresAgain:
    """The experiment; yields one ReadAgain per index, in their order, until time is up."""

    name: ClassVar[str] = "reading failures again"
    starts_processes: ClassVar[bool] = False

    indices: Sequence[int]
    seed: int
    """The one that they were read with."""
    limit_s: float
    """No further reading is begun after this."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[ReadAgain]:
        """Reads one after another."""
        deadline = time.monotonic() + self.limit_s
        for index in self.indices:
            own, other = list[bool](), list[bool]()
            for number in range(NUM_OWN + NUM_OTHER):
                if time.monotonic() > deadline:
                    break
                if number < NUM_OWN:
                    own.append(self._fails(subject, bench, index))
                else:
                    other.append(self._fails(subject, bench, index, f"again {number}"))
            yield ReadAgain(index=index, own=tuple(own), other=tuple(other))

    def _fails(self, subject: Subject, bench: Bench, index: int, *parts: str) -> bool:
        with bench.holding(index, subject.sample_id(index), path=subject.locate(index)):
            bench.reseed(self.seed, index, *parts)
            try:
                subject.read(index, bench.enter)
            except BaseException:  # also sys.exit() in a sample
                return True
            return False


def with_readings_again(prepared: Sequence[Prepared], again: Sequence[ReadAgain]) -> list[Prepared]:
    """Returns the samples that were prepared, with what came of reading some of them again."""
    found = {one.index: one for one in again}

    def told(one: Prepared) -> Prepared:
        if (readings := found.get(one.read.index)) is None:
            return one
        both = (*readings.own, *readings.other)
        read = dataclasses.replace(
            one.read,
            num_again=len(both),
            num_again_failed=sum(both),
            is_drawn=bool(readings.own) and all(readings.own) and not all(readings.other),
        )
        return dataclasses.replace(one, read=read)

    return [told(one) for one in prepared]
