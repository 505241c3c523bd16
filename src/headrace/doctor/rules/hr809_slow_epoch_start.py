"""HR809 slow-epoch-start: workers are started anew for each epoch, and that takes a good part of the run."""

from __future__ import annotations

from headrace.doctor.evidence.passes import LoaderTrace, LoaderTraces
from headrace.doctor.evidence.stages import StageTimes
from headrace.doctor.made_up.stages import loop, passed, times, traced, traces
from headrace.doctor.questions.waiting import percent, span
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

COST = 0.10
"""Share of the whole run; below a tenth the start is hardly felt."""
FLOOR_S = 0.5
"""A start that is shorter is a fork and a first batch."""


class SlowEpochStart(Rule):
    """HR809."""

    code = "HR809"
    name = "slow-epoch-start"
    summary = "Workers that are started again for each epoch, where the start takes more than a tenth of the time."
    rationale = """
        Without `persistent_workers`, a DataLoader ends its workers after each epoch and starts new ones at the next:
        with `spawn` or `forkserver` each imports torch and the script again, and gets the data set by pickle; with
        `fork` a large process is copied. Until the first batch is there, the loop waits.

        Only what the start takes beyond one ordinary batch is counted, because that batch has to be prepared anyway.
        The first epoch is not counted: it has to start workers. It is no fault in a run of one epoch, nor if epochs are
        long. Of a loader that the script makes anew for each epoch, HR702 speaks: there the setting changes nothing.
        """
    experiment = "Nothing is run: the time from `iter(loader)` to the first batch is taken in each epoch."
    needs = (LoaderTraces, StageTimes)
    fix = Fix(
        text="Keep the workers from epoch to epoch.",
        safety="workers keep their copy of the data set: changes to it after the first epoch do not reach them",
        snippet="loader = DataLoader(dataset, num_workers=2,\n                    persistent_workers=True)",
    )
    references = ("mmpretrain#196", "pytorch#15849", "pytorch#158704")

    def judge(self, traces: LoaderTraces, _: StageTimes) -> list[Finding]:
        """One finding for each such loader."""
        return [finding for trace in traces.loaders if (finding := self._judge_one(trace, traces.wall_s)) is not None]

    def _judge_one(self, trace: LoaderTrace, run_s: float) -> Finding | None:
        if trace.num_workers == 0 or trace.persistent_workers:
            return None
        later = [
            one for one in trace.passes[1:] if one.num_worker_starts and one.num_batches > 1 and not one.is_made_anew
        ]
        if not later:
            return None
        starts_s = [one.first_wait_s - (trace.batch_s or 0.0) for one in later]
        cost_s = sum(starts_s)
        if min(starts_s) < FLOOR_S or cost_s < COST * run_s:
            return None
        return Finding(
            message=f"{count(len(later), 'epoch')} after the first began with {span(cost_s / len(later))} of starting workers: "
            f"{percent(cost_s / run_s)} of the {span(run_s)} that the script ran",
            severity="warning",
            confidence=0.85,
            basis="observed",
            stage="workers",
            where=trace.where,
            evidence={
                "first_waits_s": [one.first_wait_s for one in trace.passes],
                "walls_s": [one.wall_s for one in trace.passes],
                "batch_s": trace.batch_s,
                "num_workers": trace.num_workers,
            },
        )

    sick = (
        Example(
            title="Three short epochs with spawned workers",
            evidence=(
                traces(traced(*[passed(first_wait_s=2.1, wall_s=8.0, num_worker_starts=2)] * 3), wall_s=30.0),
                times(loop(0.02)),
            ),
            message="2 epochs after the first began with 2.0 s of starting workers: 13 % of the 30 s that the script ran",
        ),
        Example(
            title="An evaluation that starts workers each time",
            evidence=(
                traces(
                    traced(
                        *[passed(10, first_wait_s=1.1, wall_s=2.0, num_worker_starts=2, num_steps=0)] * 4,
                        role="evaluation",
                    ),
                    wall_s=20.0,
                ),
                times(loop(0.02)),
            ),
            message="3 epochs after the first began with 1.0 s of starting workers: 15 % of the 20 s that the script ran",
        ),
    )
    healthy = (
        Example(
            title="Long epochs",
            evidence=(
                traces(traced(*[passed(first_wait_s=2.1, wall_s=600.0, num_worker_starts=2)] * 3), wall_s=1_810.0),
                times(loop(0.02)),
            ),
        ),
        Example(
            title="A short evaluation in a long run",
            evidence=(
                traces(
                    traced(*[passed(10, first_wait_s=1.1, wall_s=2.0, num_worker_starts=2)] * 4, role="evaluation"),
                    wall_s=3_600.0,
                ),
                times(loop(0.02)),
            ),
        ),
        Example(
            title="One epoch",
            evidence=(traces(traced(passed(first_wait_s=2.1, wall_s=8.0, num_worker_starts=2))), times(loop(0.02))),
        ),
        Example(
            title="A loader that is made anew for each epoch: no setting keeps its workers",
            evidence=(
                traces(
                    traced(
                        passed(first_wait_s=2.1, wall_s=8.0, num_worker_starts=2),
                        *[passed(first_wait_s=2.1, wall_s=8.0, num_worker_starts=2, is_made_anew=True)] * 2,
                        num_made=3,
                    ),
                    wall_s=30.0,
                ),
                times(loop(0.02)),
            ),
        ),
        Example(
            title="Workers that are kept",
            evidence=(
                traces(traced(*[passed(first_wait_s=1.0, wall_s=8.0)] * 3, persistent_workers=True), wall_s=30.0),
                times(loop(0.02)),
            ),
        ),
        Example(
            title="First batches that are slow because every batch is",
            evidence=(
                traces(
                    traced(*[passed(first_wait_s=2.1, wall_s=8.0, num_worker_starts=2)] * 3, batch_s=2.0), wall_s=30.0
                ),
                times(loop(0.4)),
            ),
        ),
    )
