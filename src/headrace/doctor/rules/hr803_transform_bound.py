"""HR803 transform-bound: a loop that waits, because preparing samples is too much computing."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times
from headrace.doctor.questions.waiting import judged, percent, span, stage_of, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule


class TransformBound(Rule):
    """HR803."""

    code = "HR803"
    name = "transform-bound"
    summary = "A starved loop whose workers spend most of a batch's time computing inside the data set."
    rationale = """
        Decoding and transforms take cores. As long as there are cores left, more workers help; when all are busy, only
        less work for each sample does: decoding at the size that is needed, cheaper transforms, transforms of whole
        batches on the device, results that never change kept in memory.

        It is no fault while the loop does not wait for it, and busy cores alone are no fault either.
        """
    experiment = "Nothing is run: each worker's time in the data set is split by the clock of its own thread."
    needs = (StageTimes,)
    fix = Fix(
        text="Use the cores that are left, then make a sample cheaper: decode at a reduced size, move random work on "
        "whole batches to the device, cache what is the same in every epoch.",
        safety="workers: same data; another decoder or a transform on the device: other numbers",
    )
    references = ("AdaFace#115", "Renate#251", "LRD#6", "pytorch#12831")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [
            self._finding(trace, stage[1], times.usable_cores)
            for trace in judged(times)
            if waiting_kind(trace) == "starved" and (stage := stage_of(trace)) is not None and stage[0] == "transform"
        ]

    def _finding(self, trace: StageTrace, part: float, usable_cores: int) -> Finding:
        queued_s = trace.fetch_queued_s or 0.0
        crowded = (
            f"; {percent(queued_s / trace.fetch_s)} of that time they waited for a free core"
            if queued_s > 0.2 * trace.fetch_s
            else ""
        )
        sample_s = trace.fetch_cpu_s / max(trace.num_samples, 1)
        return Finding(
            message=f"batches wait for computing: preparing one sample takes {span(sample_s)} of a core, "
            f"{percent(part)} of the time that a batch takes{crowded}",
            severity="warning",
            confidence=0.85,
            basis="observed",
            stage="transform",
            where=trace.where,
            evidence={
                "fetch_s": trace.fetch_s,
                "fetch_cpu_s": trace.fetch_cpu_s,
                "fetch_queued_s": trace.fetch_queued_s,
                "collate_s": trace.collate_s,
                "num_samples": trace.num_samples,
                "num_workers": trace.num_workers,
                "usable_cores": usable_cores,
            },
        )

    sick = (
        Example(
            title="Two workers that decode large images",
            evidence=(times(loop(0.4)),),
            message="batches wait for computing: preparing one sample takes 5.3 ms of a core, 89 % of the time that a "
            "batch takes",
        ),
        Example(
            title="More workers than cores",
            evidence=(times(loop(0.4, fetch_cpu_s=40.0, fetch_queued_s=45.0), usable_cores=1),),
            message="batches wait for computing: preparing one sample takes 2.5 ms of a core, 89 % of the time that a "
            "batch takes; 50 % of that time they waited for a free core",
        ),
    )
    healthy = (
        Example(title="Much computing that the loop does not feel", evidence=(times(loop(0.03)),)),
        Example(title="Workers that wait for a disk", evidence=(times(loop(0.5, fetch_cpu_s=9.0)),)),
        Example(title="Too short to judge", evidence=(times(loop(0.6, steps=40, step_s=0.04)),)),
    )
