"""HR804 collate-bound: a loop that waits, because joining samples takes most of a batch's time."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times
from headrace.doctor.questions.waiting import judged, percent, span, stage_of, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule


class CollateBound(Rule):
    """HR804."""

    code = "HR804"
    name = "collate-bound"
    summary = "A starved loop whose batches take most of their time to be joined."
    rationale = """
        Joining samples is a copy and should be a small part of a batch's time. It is a large one if samples are many
        small numbers, nested lists or dictionaries, which are turned into tensors one by one, or if a collate function
        of one's own tokenizes, pads or computes.

        It is no fault if the loop does not wait for it, nor if the collate function does the whole preparation on
        purpose, as tokenizers do; then this says where the time goes.
        """
    experiment = "Nothing is run: the time between the last sample of a batch and the finished batch is taken."
    needs = (StageTimes,)
    fix = Fix(
        text="Let the data set return arrays instead of lists of numbers, fetch a whole batch at once with "
        "`__getitems__`, or do the work of the collate function once per sample where it can be cached.",
        safety="same data if the values stay equal",
        snippet="def __getitems__(self, rows):\n    return self.table[rows]  # one array for the whole batch",
    )
    references = ("pytorch#106704", "pytorch#4959", "pytorch#181501")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [
            self._finding(trace, stage[1])
            for trace in judged(times)
            if waiting_kind(trace) == "starved" and (stage := stage_of(trace)) is not None and stage[0] == "collate"
        ]

    def _finding(self, trace: StageTrace, part: float) -> Finding:
        return Finding(
            message=f"batches wait for being joined: collate takes {span(trace.collate_s / trace.num_measured)} for a "
            f"batch, {percent(part)} of the time that a batch takes",
            severity="warning",
            confidence=0.85,
            basis="observed",
            stage="collate",
            where=trace.where,
            evidence={
                "collate_s": trace.collate_s,
                "fetch_s": trace.fetch_s,
                "num_batches": trace.num_measured,
                "batch_bytes": trace.batch_bytes,
            },
        )

    sick = (
        Example(
            title="Lists of numbers that become tensors one by one",
            evidence=(times(loop(0.4, fetch_s=10.0, fetch_cpu_s=9.0, collate_s=80.0)),),
            message="batches wait for being joined: collate takes 160 ms for a batch, 89 % of the time that a batch takes",
        ),
        Example(
            title="A collate function that tokenizes, without workers",
            evidence=(
                times(
                    loop(0.6, num_workers=0, handover_s=None, workers=(), fetch_s=5.0, fetch_cpu_s=5.0, collate_s=25.0)
                ),
            ),
            message="batches wait for being joined: collate takes 50 ms for a batch, 83 % of the time that a batch takes",
        ),
    )
    healthy = (
        Example(title="Joining is a small part", evidence=(times(loop(0.4)),)),
        Example(
            title="Slow joining that the loop does not feel",
            evidence=(times(loop(0.02, fetch_s=10.0, fetch_cpu_s=9.0, collate_s=80.0)),),
        ),
    )
