"""The size of the last batch, by arithmetic, and whether the user's files make a batch norm."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.last_batch import LastBatch
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.stacks import user_sources
from headrace.doctor.subject import Subject

__all__ = ["STEP", "FindBatchNorm", "batch_norm_in"]

MAX_FILES = 40


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FindBatchNorm:
    """The experiment; yields one LastBatch. Parses the user's files, runs nothing."""

    name: ClassVar[str] = "last batch"
    starts_processes: ClassVar[bool] = False

    num_samples: int
    batch_size: int
    drop_last: bool

    def run(self, subject: Subject, bench: Bench) -> Iterator[LastBatch]:  # noqa: ARG002 - the files say it
        """Looks for the first batch norm."""
        with bench.holding(None, None, stage="read the source"):
            found = next(
                (name for file in user_sources()[:MAX_FILES] if (name := batch_norm_in(file)) is not None), None
            )
        yield LastBatch(
            size=0 if self.drop_last else self.num_samples % self.batch_size,
            drop_last=self.drop_last,
            num_samples=self.num_samples,
            batch_size=self.batch_size,
            has_batch_norm=True if found else None,
            batch_norm=found,
        )


def batch_norm_in(file: pathlib.Path) -> str | None:
    """Returns the name of the first batch norm that a file makes; None: none, or it cannot be read."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name.startswith(("BatchNorm", "LazyBatchNorm", "SyncBatchNorm")):
                return name
    return None


class _Step:
    place = 225
    gives: tuple[type[Evidence], ...] = (LastBatch,)
    every_split = False

    def run(self, round_: Round) -> None:
        facts = round_.facts
        if facts.num_samples is None or not facts.batch_size or facts.is_iterable:
            round_.found.lacks([LastBatch], "the size of the last batch does not follow from the loader's numbers")
        elif facts.role == "evaluation":
            round_.found.lacks([LastBatch], "the loader is for evaluation, in which batch norm needs no second sample")
        else:
            experiment = FindBatchNorm(
                num_samples=facts.num_samples, batch_size=facts.batch_size, drop_last=facts.drop_last
            )
            round_.gather(experiment, LastBatch)


STEP = _Step()
