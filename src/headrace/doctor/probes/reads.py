"""Prepares chosen samples, each alone in one process without shuffling, exactly as the data set prepares it."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import xxhash

from headrace.contract.view import ValueView, as_array, flatten, view_value
from headrace.doctor.evidence import DecodedImage, SampleRead, Violation
from headrace.doctor.lab.bench import Bench
from headrace.doctor.lab.outside import Ending, Lab
from headrace.doctor.lab.recorder import Mark
from headrace.doctor.lab.spies import describe_files
from headrace.doctor.probes.contracts import ContractProbe
from headrace.doctor.probes.raw_files import is_cut_off
from headrace.doctor.stacks import innermost_at, user_traceback
from headrace.doctor.subject import Subject
from headrace.keys import derive_key

__all__ = [
    "Prepared",
    "ReadSamples",
    "choose_indices",
    "describe_end",
    "describe_failure",
    "digest_of",
    "read_samples",
    "view_fields",
    "with_ends",
]

MAX_DEATHS = 8
"""Samples that may take a child with them before the rest is left out: each costs a deadline and a new child."""
MAX_FIELDS = 64
"""Fields viewed per sample: a sample that is a list of a million words is not a table of a million columns."""
MESSAGE_CHARS = 300
"""Characters of an exception's first line that are kept: some libraries put the data itself into it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One sample tried."""

    read: SampleRead
    stage_s: dict[str, float]
    """Seconds by stage; empty if the child did not live to tell."""
    violations: tuple[Violation, ...] = ()
    """What breaks the contract, if there is one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReadSamples:
    """The experiment; yields one Prepared per index, in their order."""

    name: ClassVar[str] = "reads"
    starts_processes: ClassVar[bool] = False

    indices: Sequence[int]
    seed: int
    """Seeds the global generators before each sample, so that a report can be made again."""
    contract: str | None = None
    """Path of a contract file."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[Prepared]:
        """Prepares one sample after another; an exception of one is its result."""
        contract = ContractProbe(subject, self.contract)
        for index in self.indices:
            yield self._prepare(index, subject, bench, contract)

    def _prepare(self, index: int, subject: Subject, bench: Bench, contract: ContractProbe) -> Prepared:
        sample_id, path = subject.sample_id(index), subject.locate(index)
        fields: tuple[ValueView, ...] = ()
        violations: tuple[Violation, ...] = ()
        failure: dict[str, Any] = {}
        digest = None
        with bench.holding(index, sample_id, path=path):
            bench.reseed(self.seed, index)
            try:
                sample = subject.read(index, bench.enter)
            except BaseException as error:  # also sys.exit() in a sample
                failure = describe_failure(error, bench)
            else:
                bench.stop_listening()
                fields, violations = view_fields(sample), contract.sample(sample, sample_id)
                digest = digest_of(sample)
                bench.images[:] = with_ends(bench)
        files = describe_files(bench.opened)
        read = SampleRead(
            index=index,
            sample_id=sample_id,
            path=path or next((file.path for file in files), None),
            outcome="error" if failure else "ok",
            stage=failure.pop("stage", "done"),
            wall_s=sum(bench.stage_s.values()),
            files=files,
            images=tuple(bench.images),
            refusals=bench.seen.refusals,
            digest=digest,
            fields=fields,
            **failure,
        )
        return Prepared(read=read, stage_s=bench.stage_s, violations=violations)


def describe_failure(error: BaseException, bench: Bench) -> dict[str, Any]:
    """Returns the fields of a SampleRead that say how it failed."""
    try:
        message = str(error).partition("\n")[0][:MESSAGE_CHARS]
        if not message and error.__cause__ is not None:  # some libraries wrap an exception and add nothing
            message = f"{type(error.__cause__).__name__}: {error.__cause__}".partition("\n")[0][:MESSAGE_CHARS]
    except Exception:  # a __str__ of the user's own that fails
        message = ""
    return {
        "stage": bench.stage_of(error),
        "error_type": type(error).__name__,
        "error_message": message,
        "error_at": innermost_at(error),
        "stack": user_traceback(error),
    }


def view_fields(sample: Any) -> tuple[ValueView, ...]:
    """Returns what each field of a sample is; a sample that cannot be looked into is one field of its class."""
    try:
        return tuple(view_value(field, value) for field, value in itertools.islice(flatten(sample), MAX_FIELDS))
    except Exception:
        return (ValueView(field="sample", kind=type(sample).__qualname__),)


def digest_of(sample: Any) -> str | None:
    """Returns a digest of the largest numeric field; samples with the same one hold the same picture, text or sound."""
    try:
        leaves = [as_array(value) for _, value in itertools.islice(flatten(sample), MAX_FIELDS)]
    except Exception:  # a sample that cannot be looked into
        return None
    largest = max((leaf for leaf in leaves if leaf is not None and leaf.ndim), key=lambda leaf: leaf.size, default=None)
    return None if largest is None else xxhash.xxh3_64_hexdigest(np.ascontiguousarray(largest).data)


def with_ends(bench: Bench) -> Iterator[DecodedImage]:
    """Yields the images in hand, with a word on those that were decoded although they are cut off."""
    tolerated = {picture.path for picture in bench.seen.pictures if picture.is_tolerant and is_cut_off(picture.source)}
    for image in bench.images:
        path = image.path or bench.seen.in_hand
        yield dataclasses.replace(image, is_cut_off=True) if path in tolerated else image


def choose_indices(num_samples: int, limit: int, seed: int) -> Sequence[int]:
    """Returns which rows to try, in the order in which to try them: ordinary, edge, then one from each equal part.

    All of them if there are no more than `limit`. Same arguments, same choice.
    """
    if num_samples <= limit:
        return range(num_samples)
    chosen = dict.fromkeys([1, 2, 0, num_samples - 1, num_samples - 2, num_samples // 2][:limit])
    draw = random.Random(derive_key("doctor-spread", seed, num_samples))
    num_parts = limit - len(chosen)
    for part in range(num_parts):
        start, end = part * num_samples // num_parts, (part + 1) * num_samples // num_parts
        free = draw.randrange(start, end)
        if free in chosen:  # an edge that was drawn again: the next row that is free
            free = next(row % num_samples for row in itertools.count(free) if row % num_samples not in chosen)
        chosen[free] = None
    return list(chosen)


def read_samples(lab: Lab, experiment: ReadSamples, say: Callable[[str], None]) -> tuple[list[Prepared], Ending]:
    """Runs the experiment to its end: a sample that is stuck or ends the interpreter is recorded, and the rest goes on.

    Returns:
        What was tried, in data set order, and the last ending: `done` if every index was tried.
    """
    pending, tried, wall_s, num_deaths = experiment.indices, list[Prepared](), 0.0, 0
    while True:
        num_before = len(tried)

        def receive(record: Prepared) -> None:
            tried.append(record)
            say(f"{len(tried):,} of {len(experiment.indices):,} samples prepared")

        ending = lab.run(dataclasses.replace(experiment, indices=pending), receive)
        wall_s += ending.wall_s
        num_done = len(tried) - num_before
        if ending.outcome in {"stuck", "crashed"}:
            num_deaths += 1
            # A child may also end with nothing in hand, by a thread of the user's own: then no sample is to blame.
            if ending.mark is not None:
                tried.append(Prepared(read=describe_end(ending, ending.mark, pending[num_done]), stage_s={}))
                num_done += 1
        pending = pending[num_done:]
        if ending.outcome in {"done", "failed", "over-budget"} or num_deaths == MAX_DEATHS or not pending:
            break
    tried.sort(key=lambda one: one.read.index)
    outcome = "done" if not pending else ending.outcome
    return tried, dataclasses.replace(ending, outcome=outcome, wall_s=wall_s)


def describe_end(ending: Ending, mark: Mark, index: int) -> SampleRead:
    """Returns the sample that a child had in hand when it was stuck or ended."""
    is_crash = ending.outcome == "crashed"
    message = "the interpreter ended while this sample was prepared" if is_crash else "no answer before the deadline"
    return SampleRead(
        index=index,
        sample_id=index if mark.sample_id is None else mark.sample_id,
        path=mark.path,
        outcome=ending.outcome,
        stage=mark.stage,
        error_type=ending.cause if is_crash else None,
        error_message=message,
        error_at=ending.at,
        stack=ending.stack,
        wall_s=ending.mark_s,
        files=describe_files([mark.path]) if mark.path and pathlib.Path(mark.path).is_file() else (),
    )
