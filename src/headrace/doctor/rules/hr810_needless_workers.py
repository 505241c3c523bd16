"""HR810 needless-workers: handing batches over costs several times what making them costs."""

from __future__ import annotations

import statistics

from headrace.doctor.evidence.system import Pace
from headrace.doctor.made_up.system import a_pace
from headrace.doctor.rule import Example, Finding, Fix, Rule

FEWEST_INTERVALS = 8
RATIO = 4.0
"""Times slower with workers than without: far above what noise makes of two medians."""
FEWEST_BATCHES = 100
"""Per epoch: in a shorter one there is nothing to win."""
CPU_RATIO = 2.0
"""Times the processor time of making a batch that taking it over must cost."""
LOST_S = 0.2
"""Seconds per epoch that must be lost."""


class NeedlessWorkers(Rule):
    """HR810."""

    code = "HR810"
    name = "needless-workers"
    summary = "Workers for samples that are ready in memory: the hand-over costs several times the work."
    rationale = """
        Between processes a batch costs about a millisecond, whatever is in it: it is announced, mapped and built anew in the
        training process, and prefetching cannot hide that, because the training process does it. Samples that are rows of
        a tensor in memory cost a few microseconds; workers then make the loop slower, take memory, and start anew in each
        epoch.

        It is no fault if making the batch is a good part of the cost, or if an epoch is so short that nothing is lost.
        """
    experiment = """
        The loader is walked through in one process and with its own workers, up to sixty batches each, as fast as it goes, those
        made ahead not counted. Both are medians of the same run on the same machine. What counts of the second is at most the
        processor time that this process spends on taking a batch over, and that must be twice what making one takes, so that
        a busy machine is not blamed on workers.
        """
    needs = (Pace,)
    fix = Fix(
        text="Load without workers, and gather whole batches: a batched sampler, __getitems__, or headrace.arrays.",
        safety="same data; random transforms draw from another stream",
        snippet="loader = DataLoader(dataset, batch_size=64, num_workers=0)",
    )
    references = ("pytorch#106704", "pytorch#4959", "pytorch#181501", "Lightning#17410")

    def judge(self, pace: Pace) -> list[Finding]:
        """At most one finding."""
        if min(len(pace.single_s), len(pace.worker_s)) < FEWEST_INTERVALS or (pace.num_batches or 0) < FEWEST_BATCHES:
            return []
        single, worked = statistics.median(pace.single_s), statistics.median(pace.worker_s)
        taken = worked
        if pace.handover_cpu_s is not None and pace.single_cpu_s is not None:
            # Beside other programs three processes wait longer for their cores than one does; what they compute stays.
            if pace.handover_cpu_s < CPU_RATIO * pace.single_cpu_s:
                return []
            taken = min(worked, pace.handover_cpu_s)
        lost_s = (taken - single) * (pace.num_batches or 0)
        if worked < RATIO * single or lost_s < LOST_S:
            return []
        noun = "worker" if pace.num_workers == 1 else "workers"
        return [
            Finding(
                message=f"a batch takes {1e3 * worked:.2f} ms with {pace.num_workers} {noun} and {1e3 * single:.2f} ms without",
                severity="warning",
                basis="experiment",
                confidence=0.8,
                stage="hand-over",
                evidence={"with_workers_s": worked, "without_s": single, "lost_per_epoch_s": lost_s},
            )
        ]

    sick = (
        Example(
            title="Rows of a tensor through four workers",
            evidence=(a_pace(num_batches=2_000, num_workers=4, single_s=(1e-4,) * 20, worker_s=(1.2e-3,) * 20),),
            message="a batch takes 1.20 ms with 4 workers and 0.10 ms without",
        ),
        Example(
            title="One worker",
            evidence=(
                a_pace(
                    num_batches=1_000,
                    num_workers=1,
                    single_s=(5e-5,) * 20,
                    worker_s=(8e-4,) * 20,
                    single_cpu_s=5e-5,
                    handover_cpu_s=5e-4,
                ),
            ),
            message="a batch takes 0.80 ms with 1 worker and 0.05 ms without",
        ),
    )
    healthy = (
        Example(
            title="Decoding is the work",
            evidence=(a_pace(num_batches=2_000, num_workers=4, single_s=(4e-2,) * 20, worker_s=(1.1e-2,) * 20),),
        ),
        Example(
            title="Workers that wait for cores which other programs have",
            evidence=(
                a_pace(
                    num_batches=2_000,
                    num_workers=2,
                    single_s=(3e-4,) * 20,
                    worker_s=(3e-3,) * 20,
                    single_cpu_s=3e-4,
                    handover_cpu_s=5e-4,
                ),
            ),
        ),
        Example(
            title="An epoch of ten batches",
            evidence=(a_pace(num_batches=10, num_workers=2, single_s=(1e-4,) * 9, worker_s=(1e-3,) * 9),),
        ),
        Example(
            title="Too few batches to compare",
            evidence=(a_pace(num_batches=2_000, num_workers=2, single_s=(1e-4,) * 3, worker_s=(1e-3,) * 3),),
        ),
    )
