"""HR814 shallow-prefetch: workers are fast enough on average, and the loop still waits when several slow batches meet."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times, workers
from headrace.doctor.questions.waiting import STARVED, judged, percent, span, wait_share, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count


class ShallowPrefetch(Rule):
    """HR814."""

    code = "HR814"
    name = "shallow-prefetch"
    summary = "A training loop that waits in bursts while its workers have nothing to do in a good part of the time."
    rationale = """
        A worker may be `prefetch_factor` batches ahead, two by default. If batches take unequal times, or the loop does
        (an evaluation or a checkpoint between steps), the queue runs empty after a few slow batches and is full, with
        idle workers, in between. A longer queue evens that out; more workers would only be idle too.

        It is no fault if the loop hardly waits, nor is an idle worker by itself. If workers are busy nearly all the
        time, a longer queue wins nothing, and that is another rule's.
        """
    experiment = "Nothing is run: the waits of the loop and the idle time of its workers are taken."
    needs = (StageTimes,)
    fix = Fix(
        text="Let each worker be further ahead.",
        safety="same data; each batch that waits takes memory, shared memory for tensors",
        snippet="loader = DataLoader(dataset, num_workers=2, prefetch_factor=8)",
    )
    references = ("pytorch#100703", "pytorch#25643", "pytorch#58030")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [self._finding(trace) for trace in judged(times) if waiting_kind(trace) == "bursts"]

    def _finding(self, trace: StageTrace) -> Finding:
        idle_s = sum(one.idle_s for one in trace.workers)
        busy_s = sum(one.fetch_s + one.collate_s for one in trace.workers)
        share = wait_share(trace)
        return Finding(
            message=f"the loop waits in {percent(share)} of its time, in {trace.num_waited:,} of "
            f"{count(trace.num_batches, 'step')} ({span(trace.wait_s / max(trace.num_waited, 1))} each), while its "
            f"workers are idle in {percent(idle_s / (idle_s + busy_s))} of theirs",
            severity="warning" if share >= STARVED else "info",
            confidence=0.75,
            basis="observed",
            stage="workers",
            where=trace.where,
            evidence={
                "wait_s": trace.wait_s,
                "num_waited": trace.num_waited,
                "idle_s": idle_s,
                "busy_s": busy_s,
                "prefetch_factor": trace.prefetch_factor,
                "num_workers": trace.num_workers,
            },
        )

    sick = (
        Example(
            title="Unequal batches, two ahead",
            evidence=(times(loop(0.15, num_waited=60, workers=workers(0.1, 0.1, idle_s=20.0))),),
            message="the loop waits in 15 % of its time, in 60 of 500 steps (125 ms each), while its workers are idle in "
            "44 % of theirs",
        ),
        Example(
            title="Little waiting, worth a word",
            evidence=(times(loop(0.06, num_waited=40, workers=workers(0.1, 0.1, idle_s=25.0))),),
            message="the loop waits in 6 % of its time, in 40 of 500 steps (75 ms each), while its workers are idle in "
            "50 % of theirs",
        ),
    )
    healthy = (
        Example(title="Workers that are busy all the time", evidence=(times(loop(0.4)),)),
        Example(
            title="Idle workers and no waiting",
            evidence=(times(loop(0.01, num_waited=5, workers=workers(0.05, 0.05, idle_s=40.0))),),
        ),
        Example(
            title="Waiting in every step, though workers are idle: not understood, so nothing is said",
            evidence=(times(loop(0.15, num_waited=500, workers=workers(0.1, 0.1, idle_s=20.0))),),
        ),
    )
