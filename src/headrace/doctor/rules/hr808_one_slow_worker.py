"""HR808 one-slow-worker: one worker takes much longer for a batch than the others, and all wait for it in turn."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times, workers
from headrace.doctor.questions.waiting import judged, percent, slow_worker, span, wait_share, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule


class OneSlowWorker(Rule):
    """HR808."""

    code = "HR808"
    name = "one-slow-worker"
    summary = "A training loop that waits for one worker, which takes at least twice as long as the others."
    rationale = """
        Workers get batches in turn, and batches are handed over in order: if one worker is slow, every batch behind its
        own waits, and the others stand idle. Causes are a stream whose parts are unequal (one worker has the large
        files), a cache or an open file that only the first worker has, a setting made for worker 0, a core that it
        shares with the training process.

        It is no fault if the loop does not wait for it. Batches of one worker that happen to be larger once in a while
        do not make it twice as slow on average.
        """
    experiment = "Nothing is run: each worker's time for its batches is taken."
    needs = (StageTimes,)
    fix = Fix(
        text="Look at what is different in that worker: its part of a stream, what `worker_init_fn` does for it, which "
        "core it runs on. If only the order holds the loop up, let batches come as they are ready.",
        safety="`in_order=False` changes the order of batches",
        snippet="loader = DataLoader(dataset, num_workers=4, in_order=False)",
    )
    references = ("Batches come from workers in turn: torch.utils.data, in_order", "pytorch#12831")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        found = []
        for trace in judged(times):
            slow = slow_worker(trace)
            if slow is not None and waiting_kind(trace) == "one-worker":
                found.append(self._finding(trace, *slow))
        return found

    def _finding(self, trace: StageTrace, number: int, factor: float) -> Finding:
        batch_s = [one.typical_s for one in trace.workers]
        return Finding(
            message=f"worker {number} of {trace.num_workers} takes {span(batch_s[number])} for a usual batch, {factor:.1f} times as "
            f"long as the others; the loop waits in {percent(wait_share(trace))} of its time",
            severity="warning",
            confidence=0.8,
            basis="observed",
            stage="workers",
            where=trace.where,
            evidence={"batch_s_of_workers": batch_s, "wait_s": trace.wait_s, "loop_s": trace.loop_s},
        )

    sick = (
        Example(
            title="The last of four workers",
            evidence=(times(loop(0.3, num_workers=4, workers=workers(0.1, 0.11, 0.1, 0.4))),),
            message="worker 3 of 4 takes 400 ms for a usual batch, 4.0 times as long as the others; the loop waits in 30 % of "
            "its time",
        ),
        Example(
            title="One of two",
            evidence=(times(loop(0.12, workers=workers(0.25, 0.1))),),
            message="worker 0 of 2 takes 250 ms for a usual batch, 2.5 times as long as the others; the loop waits in 12 % of "
            "its time",
        ),
    )
    healthy = (
        Example(title="Workers that are equally slow", evidence=(times(loop(0.4, workers=workers(0.3, 0.31))),)),
        Example(
            title="A slow worker that the loop does not feel", evidence=(times(loop(0.01, workers=workers(0.25, 0.1))),)
        ),
        Example(
            title="Too few batches of each",
            evidence=(times(loop(0.3, workers=workers(0.25, 0.1, num_batches=4))),),
        ),
    )
