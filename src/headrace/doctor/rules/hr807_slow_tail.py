"""HR807 slow-tail: most of the waiting sits in a few steps, because a few samples take very long."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times
from headrace.doctor.questions.waiting import STARVED, judged, longest_waits, percent, span, wait_share, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count, verb


class SlowTail(Rule):
    """HR807."""

    code = "HR807"
    name = "slow-tail"
    summary = "A training loop that waits little, except in a few steps that hold most of the waiting."
    rationale = """
        Batches are handed over in order, so one slow sample holds up its whole batch, and all ready batches behind it.
        Typical are a few huge images or long recordings, a file on a slow server, a retry, a cache that is filled now
        and then. More workers hardly help; a longer queue does if the slow samples are rare, and finding them helps
        most.

        It is no fault if the whole waiting is below a twentieth of the loop's time. Fewer than a hundred steps are not
        judged. A machine that is busy with something else now and then shows the same, so look whether it repeats.
        """
    experiment = "Nothing is run: the waits of the script's own steps are taken, and how they are distributed."
    needs = (StageTimes,)
    fix = Fix(
        text="Find the slow samples and make them equal to the others; until then, let more batches wait ready.",
        safety="same data; each batch that waits takes memory",
        snippet="loader = DataLoader(dataset, num_workers=4, prefetch_factor=8)",
    )
    references = ("pytorch#100703", "pytorch#25643", "mmpretrain#196")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [self._finding(trace) for trace in judged(times) if waiting_kind(trace) == "tail"]

    def _finding(self, trace: StageTrace) -> Finding:
        share = wait_share(trace)
        number, held = longest_waits(trace)
        return Finding(
            message=f"{count(number, 'step')} of {trace.num_batches:,} {verb(number, 'holds', 'hold')} {percent(held)} of the "
            f"waiting, {span(held * trace.wait_s / number)} each; the loop waits in {percent(share)} of its time",
            severity="warning" if share >= STARVED else "info",
            confidence=0.7,
            basis="observed",
            stage="loop",
            where=trace.where,
            evidence={
                "wait_s": trace.wait_s,
                "longest_waits_s": held * trace.wait_s,
                "num_longest": number,
                "median_wait_s": trace.median_wait_s,
            },
        )

    sick = (
        Example(
            title="Ten of five hundred steps",
            evidence=(times(loop(0.2, worst_wait_s=9.0, num_waited=12, median_wait_s=2e-4)),),
            message="10 steps of 500 hold 90 % of the waiting, 900 ms each; the loop waits in 20 % of its time",
        ),
        Example(
            title="Five in a hundred: neither two in a hundred, nor every second one",
            evidence=(times(loop(0.5, num_holding=20, num_waited=25, median_wait_s=2e-4)),),
            message="20 steps of 500 hold 80 % of the waiting, 1.0 s each; the loop waits in 50 % of its time",
        ),
        Example(
            title="Less waiting, worth a word",
            evidence=(times(loop(0.06, worst_wait_s=2.4, num_waited=9, median_wait_s=2e-4)),),
            message="10 steps of 500 hold 80 % of the waiting, 240 ms each; the loop waits in 6 % of its time",
        ),
    )
    healthy = (
        Example(title="Waiting in all steps alike", evidence=(times(loop(0.4)),)),
        Example(title="A few slow steps in a loop that hardly waits", evidence=(times(loop(0.02, worst_wait_s=0.9)),)),
        Example(title="Too few steps", evidence=(times(loop(0.2, steps=80, worst_wait_s=1.5)),)),
    )
