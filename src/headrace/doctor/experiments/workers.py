"""The user's loader with workers, twice, and then the same samples in one process: see `walks.examination`."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from typing import Any

from headrace.doctor.evidence import CollateTrial, Evidence
from headrace.doctor.evidence.randomness import WorkerDraws
from headrace.doctor.evidence.workers import (
    WorkerComparison,
    WorkerEnds,
    WorkerShares,
)
from headrace.doctor.lab.outside import Ending
from headrace.doctor.round import Round, told
from headrace.doctor.walks.examination import Refusal, WalkWithWorkers
from headrace.doctor.walks.loader_walk import patience

__all__ = ["STEP"]

KINDS: tuple[type[Evidence], ...] = (WorkerEnds, WorkerDraws, WorkerShares, WorkerComparison)
MAX_WORKERS, MAX_STREAM_WORKERS = 4, 8
"""Workers that are started at most: four disturb each other as sixteen do; of streams each has a part of its own."""
MAX_SAMPLES, MAX_QUICK_SAMPLES = 512, 128
"""Samples of one walk: workers that share a file handle meet within a few hundred."""
MAX_REPEATED = 4096
"""Samples of one walk where the data set holds something open: two workers meet there in one of some hundred reads."""


class _Step:
    """Looks at how the loader fares with workers: its own number, or two."""

    place = 400
    gives = KINDS
    every_split = False

    def run(self, round_: Round) -> None:
        """One child for everything; what it had told before it ended counts."""
        facts, wishes = round_.facts, round_.wishes
        if round_.introduction.facts.batch_size is None and facts.collate is None:
            round_.found.lacks(KINDS, "a bare data set has no loader that would use workers")
            return
        if facts.num_workers == 0 and wishes.quick:
            round_.found.lacks(KINDS, "the loader uses no workers; --quick adds none")
            return
        limit = MAX_STREAM_WORKERS if facts.is_iterable else MAX_WORKERS
        num_workers = min(facts.num_workers or 2, limit)
        dead = {one.read.index for one in round_.prepared if one.read.outcome in {"stuck", "crashed"}}
        raising = [one.read.index for one in round_.prepared if one.read.outcome == "error"]
        walls = [one.read.wall_s for one in round_.prepared if one.read.outcome == "ok"] or [0.0]
        walk_s = min(wishes.walk_s, round_.left_s / 3)
        fits = int(walk_s / 4 / max(sum(walls) / len(walls), 1e-4))
        most = MAX_QUICK_SAMPLES if wishes.quick else MAX_SAMPLES
        trial = round_.found.evidence.get(CollateTrial)
        round_.say(f"walking with {num_workers} workers")
        with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder:
            experiment = WalkWithWorkers(
                folder=folder,
                num_workers=num_workers,
                facts=facts,
                max_samples=max(2 * num_workers, min(most, fits)),
                max_repeated=min(most if wishes.quick else MAX_REPEATED, fits),
                walk_s=walk_s,
                patience_s=patience(walls),
                seed=wishes.seed,
                left_out=frozenset(dead),
                wanted=tuple(raising[:2]),
                calls_collate=not isinstance(trial, CollateTrial) or trial.succeeded,
            )
            records, ending = round_.ask(experiment, alone=True)
        self._keep(round_, records, ending, num_workers)

    @staticmethod
    def _keep(round_: Round, records: Sequence[Any], ending: Ending, num_workers: int) -> None:
        found = {type(record): record for record in records if not isinstance(record, Refusal)}
        refused = next((record.reason for record in records if isinstance(record, Refusal)), None)
        round_.found.note("workers", ending, refused or f"two epochs of {num_workers} workers against one process")
        ends = found.get(WorkerEnds)
        if ends is not None and ending.outcome in {"stuck", "crashed"} and WorkerComparison not in found:
            # What one process did not survive either was already in the hands of a worker.
            in_hand = None if ending.mark is None else ending.mark.sample_id
            found[WorkerEnds] = dataclasses.replace(
                ends,
                ends=tuple(
                    dataclasses.replace(end, in_one_process="same")
                    if in_hand in end.sample_ids or not end.sample_ids
                    else end
                    for end in ends.ends
                ),
            )
        for record in found.values():
            round_.found.add(record)
        reason = refused or told(ending) or "the walk with workers did not come so far"
        round_.found.lacks([kind for kind in KINDS if kind not in found], reason)


STEP = _Step()
