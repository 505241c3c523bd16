"""Where the time of a loader goes: a copy of it whose workers note what they do, batch by batch; and what they noted.

Data set, sampler, order, random numbers and results are the user's. Cost: some ten microseconds a batch and a few a sample.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from headrace.doctor.subject import Subject
from headrace.doctor.subject.kind import CannotExamine
from headrace.doctor.subject.looking import is_headrace
from headrace.doctor.timing.fetchers import with_change
from headrace.doctor.timing.notes import MADE
from headrace.doctor.timing.noting import SENT, Noting
from headrace.doctor.timing.noting_tasks import TaskNoting
from headrace.doctor.timing.stage_clock import COLLATE, DECODE, NUM_STAGES, READ, SAMPLE, STAGES, TRANSFORM
from headrace.doctor.timing.tasks import with_task_change
from headrace.doctor.timing.timed import BatchMade, StageUse

__all__ = ["Account"]

FOLDED_SHARE = 0.01
"""Of the data set's time: less that could not be told apart gets no row of its own."""


class Account:
    """The account of one walk, or of several passes through one loader."""

    def __init__(self, folder: str | pathlib.Path) -> None:
        """Notes go into an empty folder."""
        self._folder = pathlib.Path(folder)
        self._noting: Noting | TaskNoting | None = None
        self._num_workers = 0

    def wrap(self, subject: Subject, loader: Any) -> Any:
        """Returns a copy of the loader that keeps the account; walk through it as through the loader itself.

        Args:
            subject: What the loader is of.
            loader: The user's loader of torch or headrace, or a copy of it with something changed.

        Raises:
            CannotExamine: it is another loader, starts its workers in a way of its own, or chooses them while it runs.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        twin: Any
        if is_headrace(loader):
            tasks = self._noting = TaskNoting(str(self._folder))
            twin = with_task_change(loader, tasks)
            self._num_workers = twin._runner.num_workers
            return twin
        joins = getattr(loader, "batch_sampler", None) is not None
        noting = self._noting = Noting(
            str(self._folder),
            joins=joins,
            takes_apart=subject.is_batched and not joins,
            in_order=bool(getattr(loader, "in_order", True)),
        )
        twin = with_change(loader, noting)
        self._num_workers = int(getattr(loader, "num_workers", 0))
        return twin

    def read(self) -> tuple[tuple[StageUse, ...], tuple[BatchMade, ...]]:
        """Returns what the stages took, and the way of each delivered batch (workers only), in the order of delivery.

        The first batch of each worker is left out of the stages, if there are others: files are opened and modules are
        imported in it. `handover` is the time from a batch being there to its delivery, unpickling in it, plus the
        pickling, which all workers do at the same time, by their number; the way through the pipe before its first byte
        has arrived is not in it.

        Raises:
            CannotExamine: batches came out and none of them was seen.
        """
        noting = self._noting
        if noting is None:
            raise CannotExamine("no loader has been wrapped")
        noting.close()
        made = [record for path in sorted(self._folder.glob("*.made")) for record in _records(path)]
        if not made:
            if noting.has_delivered is not False:
                raise CannotExamine("the loader's workers were not started by the walk, so nothing was seen of them")
            return (), ()
        uses = (*_uses(_steady(made), max(self._num_workers, 1)), *self._handover(noting, made))
        return uses, self._delivered(noting, made) if self._num_workers else ()

    def _handover(self, noting: Noting | TaskNoting, made: list[_Made]) -> Iterator[StageUse]:
        if not self._num_workers or not noting.num_taken:
            return
        sent = [pair for path in self._folder.glob("*.sent") for pair in SENT.iter_unpack(_whole(path, SENT.size))]
        per_batch = sum(one.num_samples for one in made) / len(made)
        pickled_s = sum(wall for wall, _ in sent) / max(len(sent), 1) * noting.num_taken
        pickled_cpu_s = sum(cpu for _, cpu in sent) / max(len(sent), 1) * noting.num_taken
        yield StageUse(
            stage="handover",
            wall_s=noting.taken_s + pickled_s / self._num_workers,
            cpu_s=noting.taken_cpu_s + pickled_cpu_s,
            num_samples=round(per_batch * noting.num_taken),
            num_servers=1,
        )

    def _delivered(self, noting: Noting | TaskNoting, made: list[_Made]) -> tuple[BatchMade, ...]:
        of = {(one.epoch, one.number): one for one in made}
        found = []
        for place, key in enumerate(noting.delivered_batches()):
            one = of.get(key)
            if one is not None:
                found.append(
                    BatchMade(
                        batch=place,
                        worker=one.worker,
                        began_s=one.began_s,
                        fetched_s=one.fetched_s,
                        made_s=one.made_s,
                        slowest_sample_s=None if one.slowest_s < 0 else one.slowest_s,
                    )
                )
        return tuple(found)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """One batch, as its worker noted it."""

    process: str
    worker: int
    epoch: int
    number: int
    num_samples: int
    num_bytes: int
    num_requests: int
    began_s: float
    fetched_s: float
    made_s: float
    slowest_s: float
    late_s: float
    """For which its thread wanted to compute and had to wait for a core; below 0: not told."""
    walls_s: list[float]
    cpus_s: list[float]


def _whole(path: pathlib.Path, size: int) -> bytes:
    """Only whole records: a worker may have been ended while it wrote."""
    content = path.read_bytes()
    return content[: len(content) // size * size]


def _records(path: pathlib.Path) -> Iterator[_Made]:
    worker = int(path.stem.partition("-")[0])
    for values in MADE.iter_unpack(_whole(path, MADE.size)):
        epoch, number, num_samples, num_bytes, num_requests, *times_s = values
        began_s, fetched_s, made_s, slowest_s, late_s, *by_stage = times_s
        yield _Made(
            process=path.stem,
            worker=worker,
            epoch=epoch,
            number=number,
            num_samples=num_samples,
            num_bytes=num_bytes,
            num_requests=num_requests,
            began_s=began_s,
            fetched_s=fetched_s,
            made_s=made_s,
            slowest_s=slowest_s,
            late_s=late_s,
            walls_s=by_stage[:NUM_STAGES],
            cpus_s=by_stage[NUM_STAGES:],
        )


def _steady(made: list[_Made]) -> list[_Made]:
    """Without the first batch of each process, if most are left."""
    seen, later = set[str](), []
    for one in made:
        if one.process in seen:
            later.append(one)
        seen.add(one.process)
    return later if 2 * len(later) >= len(made) else made


def _uses(made: list[_Made], num_servers: int) -> Iterator[StageUse]:
    walls = [sum(one.walls_s[stage] for one in made) for stage in range(NUM_STAGES)]
    cpus = [sum(one.cpus_s[stage] for one in made) for stage in range(NUM_STAGES)]
    in_dataset = (READ, DECODE, TRANSFORM, SAMPLE)
    awake = _awake(made)
    told = [stage for stage in in_dataset if stage != SAMPLE and walls[stage] > 0]
    if told and walls[SAMPLE] <= FOLDED_SHARE * sum(walls[stage] for stage in in_dataset):
        walls[told[0]] += walls[SAMPLE]
        cpus[told[0]] += cpus[SAMPLE]
        if awake is not None:
            awake[told[0]] += awake[SAMPLE]
        walls[SAMPLE] = 0.0
    reader = READ if walls[READ] else SAMPLE if walls[SAMPLE] else DECODE
    num_bytes = sum(one.num_bytes for one in made) if all(one.num_requests >= 0 for one in made) else None
    num_requests = sum(one.num_requests for one in made) if num_bytes is not None else None
    for stage in (*in_dataset, COLLATE):
        if walls[stage]:
            yield StageUse(
                stage=STAGES[stage],
                wall_s=walls[stage],
                cpu_s=cpus[stage],
                num_samples=sum(one.num_samples for one in made),
                num_servers=num_servers,
                num_bytes=num_bytes if stage == reader else None,
                num_requests=num_requests if stage == reader else None,
                # In single batches the clock of the processor may run ahead of the wall's; their sums must not.
                awake_s=None if awake is None else min(awake[stage], max(walls[stage], cpus[stage])),
            )


def _awake(made: list[_Made]) -> list[float] | None:
    """By stage, what it computed and its part of what its thread waited for a core; None: not told.

    The kernel is asked once a batch, since asking costs as much as ten stages do. Who computes is who waits for a core, so the
    wait is spread over the stages by what they computed, as far as their wall time leaves room; the rest over all that is left.
    """
    if not made or any(one.late_s < 0 for one in made):
        return None
    awake = [0.0] * NUM_STAGES
    for one in made:
        rooms = [max(0.0, wall - cpu) for wall, cpu in zip(one.walls_s, one.cpus_s, strict=True)]
        whole = max(sum(one.cpus_s), 1e-12)
        first = [min(room, one.late_s * cpu / whole) for room, cpu in zip(rooms, one.cpus_s, strict=True)]
        left_s = max(0.0, one.late_s - sum(first))
        times = min(1.0, left_s / max(sum(rooms) - sum(first), 1e-12))
        for stage in range(NUM_STAGES):
            awake[stage] += one.cpus_s[stage] + first[stage] + times * (rooms[stage] - first[stage])
    return awake
