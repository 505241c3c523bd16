"""Counts the small objects in large containers: each one that a forked worker only looks at becomes its own copy."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import Container, Containers
from headrace.doctor.experiments.held_objects import parts_of
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.graph_walk import walk
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject

__all__ = ["STEP", "CountObjects", "measure"]

FEWEST = 20_000
"""Elements from which a container is looked at: fewer are a few megabytes at most."""
NUM_MEASURED = 64
"""Elements that stand for all: first, last and between."""
MAX_DEPTH = 6
MAX_LISTED = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CountObjects:
    """The experiment; yields one Containers."""

    name: ClassVar[str] = "large containers"
    starts_processes: ClassVar[bool] = False

    num_workers: int
    start_method: str | None

    def run(self, subject: Subject, bench: Bench) -> Iterator[Containers]:
        """Walks through what the parts hold; elements are measured by example."""
        with bench.holding(None, None, stage="count objects"):
            found = [
                Container(path=path, num_objects=count, size_bytes=size)
                for name, part in parts_of(subject)
                for path, value in walk(part, name)
                if isinstance(value, (list, tuple, dict, set)) and len(value) >= FEWEST
                for count, size in [measure(value)]
            ]
        largest = sorted(found, key=lambda one: -one.size_bytes)[:MAX_LISTED]
        yield Containers(num_workers=self.num_workers, start_method=self.start_method, containers=tuple(largest))


def measure(container: Any) -> tuple[int, int]:
    """Returns (objects, bytes) of a container and everything in it, estimated from some of its elements.

    Small numbers and other values that all of Python shares are not counted, nor are the contents of arrays.
    """
    if isinstance(container, Mapping):
        elements: list[Any] = list(itertools.islice(container.items(), NUM_MEASURED))
    elif isinstance(container, (list, tuple)):
        step = max(1, len(container) // NUM_MEASURED)
        elements = list(container[::step][:NUM_MEASURED])
    else:
        elements = list(itertools.islice(iter(container), NUM_MEASURED))
    seen: set[int] = set()
    counted = [_measure_one(element, seen, 0) for element in elements]
    share = len(container) / max(len(elements), 1)
    return (
        int(sum(count for count, _ in counted) * share),
        sys.getsizeof(container) + int(sum(size for _, size in counted) * share),
    )


def _measure_one(value: Any, seen: set[int], depth: int) -> tuple[int, int]:
    is_shared = value is None or isinstance(value, (bool, type)) or (isinstance(value, int) and -5 <= value <= 256)
    if is_shared or id(value) in seen or depth > MAX_DEPTH:
        return 0, 0
    seen.add(id(value))
    try:
        size = 112 if hasattr(value, "nbytes") else sys.getsizeof(value)  # of an array: its head, not its contents
    except Exception:
        return 1, 64
    inner: Iterator[Any] = iter(())
    if isinstance(value, dict):
        inner = itertools.chain(value.keys(), value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = iter(value)
    elif not hasattr(value, "nbytes"):
        inner = iter(getattr(value, "__dict__", {}).values())
    parts = [_measure_one(part, seen, depth + 1) for part in itertools.islice(inner, NUM_MEASURED)]
    return 1 + sum(count for count, _ in parts), size + sum(part_size for _, part_size in parts)


class _Step:
    place = 215
    gives: tuple[type[Evidence], ...] = (Containers,)
    every_split = False

    def run(self, round_: Round) -> None:
        facts = round_.facts
        round_.gather(CountObjects(num_workers=facts.num_workers, start_method=facts.start_method), Containers)


STEP = _Step()
