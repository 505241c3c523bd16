"""What failed by chance: put together from the samples that were read again and from the walk with workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from headrace.doctor.evidence import Evidence, SampleRead
from headrace.doctor.evidence.chance import ChanceFailure, ChanceFailures
from headrace.doctor.evidence.workers import WorkerEnds, WorkerError
from headrace.doctor.questions.samples import grouped
from headrace.doctor.round import Round

__all__ = ["STEP", "put_together"]


class _Step:
    """Runs nothing of its own."""

    place = 420
    gives: tuple[type[Evidence], ...] = (ChanceFailures,)
    every_split = True

    def run(self, round_: Round) -> None:
        """Takes what there is: a loader without workers has samples only, a stream has neither."""
        ends = None if round_.is_companion else round_.found.evidence.get(WorkerEnds)
        errors = ends.errors if isinstance(ends, WorkerEnds) else ()
        reads = [one.read for one in round_.prepared]
        round_.found.add(ChanceFailures(failures=put_together(reads, errors), num_own_workers=round_.facts.num_workers))


def put_together(reads: Iterable[SampleRead], errors: Iterable[WorkerError]) -> tuple[ChanceFailure, ...]:
    """Returns one failure for each type and place; readings and errors of both sides are added up."""
    failures = [*_of_reads(reads), *_of_workers(errors)]
    kinds = grouped(((one.error_type, one.at, one.is_drawn), one) for one in failures)
    return tuple(_sum(members) for members in kinds.values())


def _of_reads(reads: Iterable[SampleRead]) -> Iterator[ChanceFailure]:
    for read in reads:
        if read.is_by_chance:
            yield ChanceFailure(
                error_type=read.error_type or "",
                message=read.error_message or "",
                stage=read.stage,
                at=read.error_at,
                sample_ids=(read.sample_id,),
                num_read=1 + read.num_again,
                num_failed=1 + read.num_again_failed,
                is_drawn=read.is_drawn,
            )


def _of_workers(errors: Iterable[WorkerError]) -> Iterator[ChanceFailure]:
    for one in errors:
        if one.in_one_process == "by chance":
            yield ChanceFailure(
                error_type=one.error_type,
                message=one.message,
                stage=one.stage,
                at=one.at,
                sample_ids=one.sample_ids,
                num_read=one.num_single,
                num_failed=one.num_single_failed,
                num_worker_errors=one.num_errors,
                is_drawn=one.is_drawn,
            )


def _sum(members: list[ChanceFailure]) -> ChanceFailure:
    return dataclasses.replace(
        members[0],
        sample_ids=tuple(dict.fromkeys(sample_id for one in members for sample_id in one.sample_ids)),
        num_read=sum(one.num_read for one in members),
        num_failed=sum(one.num_failed for one in members),
        num_worker_errors=sum(one.num_worker_errors for one in members),
    )


STEP = _Step()
