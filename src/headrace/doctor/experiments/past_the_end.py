"""Asks a data set for rows beyond its end: Python's loop over it stops at an IndexError, and at nothing else."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, ClassVar

from headrace.doctor.evidence.past_the_end import PastTheEnd
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.loops import find_loops
from headrace.doctor.round import Round
from headrace.doctor.stacks import is_user_code, user_sources
from headrace.doctor.subject import Subject

__all__ = ["STEP", "AskPastTheEnd"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskPastTheEnd:
    """The experiment; yields one PastTheEnd."""

    name: ClassVar[str] = "past the end"
    starts_processes: ClassVar[bool] = False

    seed: int

    def run(self, subject: Subject, bench: Bench) -> Iterator[PastTheEnd]:
        """Asks for the first rows beyond the end, and for one far beyond."""
        dataset, size = subject.dataset, subject.num_samples or 0
        has_iter = hasattr(type(dataset), "__iter__")
        rows = () if has_iter or not hasattr(type(dataset), "__getitem__") else (size, size + 1, 3 * size + 7)
        answered = []
        for row in rows:
            with bench.holding(row, None, stage="past the end"):
                bench.reseed(self.seed, row)
                try:
                    dataset[row]
                except BaseException:  # the end, however it is said
                    break
                bench.stop_listening()
                answered.append(row)
        is_endless = bool(rows) and len(answered) == len(rows)
        yield PastTheEnd(
            dataset=type(dataset).__qualname__,
            num_samples=size,
            has_iter=has_iter,
            answered=tuple(answered),
            num_asked=len(rows),
            loops=tuple(_loops(type(dataset).__name__)) if is_endless else (),
            defined_at=_defined_at(dataset),
        )


def _loops(kind: str) -> Iterator[str]:
    """Places in the user's loaded files that iterate over an object of this class."""
    for file in user_sources():
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        yield from (f"{file.name}:{line}" for line in find_loops(tree, kind))


def _defined_at(dataset: Any) -> str | None:
    code = getattr(getattr(type(dataset), "__getitem__", None), "__code__", None)
    if code is None or not is_user_code(code.co_filename):
        return None
    return f"{pathlib.Path(code.co_filename).name}:{code.co_firstlineno}"


class _EndStep:
    """Comes last among the samples: a data set that changes at such a question has been examined by then."""

    place = 190
    gives = (PastTheEnd,)
    every_split = False

    def run(self, round_: Round) -> None:
        """Asks unless the data set is a stream."""
        if round_.facts.is_iterable or round_.facts.num_samples is None:
            round_.found.lacks([PastTheEnd], "the data set is a stream: it has no rows by number")
        else:
            round_.gather(AskPastTheEnd(seed=round_.wishes.seed), PastTheEnd)


STEP = _EndStep()
