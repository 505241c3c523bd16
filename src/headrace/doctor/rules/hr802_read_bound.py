"""HR802 read-bound: a loop that waits, because its samples wait for files, the network or a lock."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times
from headrace.doctor.questions.waiting import judged, percent, span, stage_of, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule


class ReadBound(Rule):
    """HR802."""

    code = "HR802"
    name = "read-bound"
    summary = "A starved loop whose workers spend most of a batch's time in the data set without computing."
    rationale = """
        A worker that is inside the data set and does not compute waits: for a disk, the network, a lock, another
        process. Cores do not help then; more requests at the same time do, and fewer, larger ones do more.

        Time in which a worker could compute but has no core is counted as computing, not as waiting. It is no fault
        while the loop does not wait for it: workers may be as slow as they like as long as batches are ready in time.
        """
    experiment = "Nothing is run: each worker's time in the data set is split by the clock of its own thread."
    needs = (StageTimes,)
    fix = Fix(
        text="Keep more requests under way, read larger pieces (shards instead of single small files), or keep the data "
        "nearer: a local disk, or memory after the first epoch.",
        safety="same data; more workers take more memory",
        snippet="loader = DataLoader(dataset, num_workers=8, prefetch_factor=4)",
    )
    references = ("mmpretrain#196", "pytorch#15849", "Waiting is idle for the processor: Linux, clock_gettime(2)")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [
            self._finding(trace, stage[1])
            for trace in judged(times)
            if waiting_kind(trace) == "starved" and (stage := stage_of(trace)) is not None and stage[0] == "read"
        ]

    def _finding(self, trace: StageTrace, part: float) -> Finding:
        waiting_s = part * (trace.fetch_s + trace.collate_s)
        return Finding(
            message=f"batches wait for reading: {percent(part)} of the time that a batch takes is spent inside the data "
            f"set without computing, {span(waiting_s / max(trace.num_samples, 1))} for each sample",
            severity="warning",
            # Where the system does not say how long a thread waited for a core, that time looks like waiting for a disk.
            confidence=0.85 if trace.fetch_queued_s is not None else 0.6,
            basis="observed",
            stage="read",
            where=trace.where,
            evidence={
                "fetch_s": trace.fetch_s,
                "fetch_cpu_s": trace.fetch_cpu_s,
                "fetch_queued_s": trace.fetch_queued_s,
                "collate_s": trace.collate_s,
                "num_samples": trace.num_samples,
            },
        )

    sick = (
        Example(
            title="Two workers that wait for small files",
            evidence=(times(loop(0.5, fetch_cpu_s=9.0)),),
            message="batches wait for reading: 85 % of the time that a batch takes is spent inside the data set without "
            "computing, 5.1 ms for each sample",
        ),
        Example(
            title="A remote store read without workers",
            evidence=(
                times(
                    loop(0.8, num_workers=0, handover_s=None, workers=(), fetch_s=40.0, fetch_cpu_s=1.0, collate_s=0.5)
                ),
            ),
            message="batches wait for reading: 96 % of the time that a batch takes is spent inside the data set without "
            "computing, 2.4 ms for each sample",
        ),
    )
    healthy = (
        Example(title="Slow reads that the loop does not feel", evidence=(times(loop(0.01, fetch_cpu_s=9.0)),)),
        Example(title="Workers that compute", evidence=(times(loop(0.5)),)),
        Example(
            title="Workers that wait for a core",
            evidence=(times(loop(0.5, fetch_cpu_s=30.0, fetch_queued_s=58.0)),),
        ),
    )
