"""HR801 starved-loop: the training loop waits for data in a good part of its time."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times
from headrace.doctor.questions.waiting import (
    judged,
    per_batch_s,
    percent,
    span,
    stage_of,
    wait_share,
    waiting_kind,
    workers_needed,
)
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count

STAGES = {
    "read": "waiting for files, the network or a lock inside the data set",
    "transform": "computing inside the data set",
    "collate": "joining samples",
    "hand-over": "on the way from the worker to the loop",
}


class StarvedLoop(Rule):
    """HR801."""

    code = "HR801"
    name = "starved-loop"
    summary = "A training loop that waits for batches in more than a tenth of its time, all through the run."
    rationale = """
        While the loop waits for the next batch, the device has nothing to do. How long it waits is the most that any
        change of the loader can win, so it comes before every other question about speed.

        The first batch of each pass is not counted; that is another rule's. Waiting that a few slow samples, one slow
        worker or a short queue explain has rules of its own. It is no fault if the loop only reads data, or if a model
        is so small that it computes faster than anything can be loaded: then the loader's rate is what counts. Loops of
        fewer than 20 steps or 2 seconds, waits below a millisecond, and runs that were disturbed for a while are not
        judged.
        """
    experiment = """
        Nothing is run: the script's own steps are timed from asking for a batch to getting it, and from there to asking
        for the next one. It adds a few microseconds to a batch.
        """
    needs = (StageTimes,)
    fix = Fix(
        text="Let workers prepare batches while the loop computes, as many as the machine has cores for.",
        safety="same data for map-style data sets; random transforms draw other numbers",
        snippet="loader = DataLoader(dataset, num_workers=4,\n                    persistent_workers=True)",
    )
    references = ("AdaFace#115", "Renate#251", "LRD#6", "mmpretrain#196", "pytorch#12831")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each loop that waits."""
        return [self._finding(trace, times.usable_cores) for trace in judged(times) if waiting_kind(trace) == "starved"]

    def _finding(self, trace: StageTrace, usable_cores: int) -> Finding:
        share, batch_s, stage = wait_share(trace), per_batch_s(trace), stage_of(trace)
        where_time_goes = "" if stage is None else f", most of it {STAGES[stage[0]]}"
        prepared = ""
        if batch_s is not None:
            who = f"each of its {trace.num_workers} workers" if trace.num_workers > 1 else "its one worker"
            who = "the loop itself, without workers," if not trace.num_workers else who
            prepared = f"; {who} takes {span(batch_s)} for a batch{where_time_goes}"
        return Finding(
            message=f"{'the training loop' if trace.role == 'train' else 'the loop'} waits for data in {percent(share)} of its time: {span(trace.wait_s)} of "
            f"{span(trace.loop_s)} in {count(trace.num_batches, 'step')}{prepared}",
            severity="warning",
            confidence=0.9,
            basis="observed",
            stage="loop",
            where=trace.where,
            evidence={
                "wait_share": round(share, 4),
                "median_wait_s": trace.median_wait_s,
                "median_step_s": trace.median_step_s,
                "wait_shares": [round(part, 3) for part in trace.wait_shares],
                "batch_s": batch_s,
                "stage": None if stage is None else stage[0],
                "workers_needed": workers_needed(trace),
            },
            fix=_fix(trace, stage and stage[0], usable_cores),
        )

    sick = (
        Example(
            title="Two workers that compute and do not keep up",
            evidence=(times(loop(0.4)),),
            message="the training loop waits for data in 40 % of its time: 20 s of 50 s in 500 steps; each of its 2 "
            "workers takes 190 ms for a batch, most of it computing inside the data set",
        ),
        Example(
            title="No workers: everything is loaded in the loop",
            evidence=(
                times(
                    loop(
                        0.7,
                        num_workers=0,
                        prefetch_factor=None,
                        handover_s=None,
                        workers=(),
                        fetch_s=33.0,
                        fetch_cpu_s=2.0,
                        collate_s=2.0,
                    )
                ),
            ),
            message="the training loop waits for data in 70 % of its time: 35 s of 50 s in 500 steps; the loop itself, "
            "without workers, takes 70 ms for a batch, most of it waiting for files, the network or a lock inside the "
            "data set",
        ),
        Example(
            title="Workers that could not be seen",
            evidence=(
                times(
                    loop(0.25, num_measured=0, fetch_s=0.0, fetch_cpu_s=0.0, collate_s=0.0, handover_s=None, workers=())
                ),
            ),
            message="the training loop waits for data in 25 % of its time: 12 s of 50 s in 500 steps",
        ),
    )
    healthy = (
        Example(title="A loop that hardly waits", evidence=(times(loop(0.02)),)),
        Example(title="Too short to judge", evidence=(times(loop(0.6, steps=40, step_s=0.04)),)),
        Example(title="Few steps, however long", evidence=(times(loop(0.6, steps=15, step_s=2.0)),)),
        Example(title="Waits below a millisecond", evidence=(times(loop(0.3, steps=60_000, step_s=0.002)),)),
        Example(
            title="Disturbed for a while",
            evidence=(times(loop(0.2, wait_shares=(0.0, 0.01, 0.0, 0.8, 0.75, 0.0, 0.02, 0.0))),),
        ),
        Example(title="A script that only reads its data", evidence=(times(loop(0.97, role="unknown"), num_steps=0),)),
        Example(title="An evaluation that waits", evidence=(times(loop(0.8, role="evaluation"), num_steps=900),)),
    )


def _fix(trace: StageTrace, stage: str | None, usable_cores: int) -> Fix | None:
    """How many workers would keep up, or that no number would."""
    needed = workers_needed(trace)
    if needed is None or stage == "hand-over":
        return None
    needed = max(needed, trace.num_workers + 1)
    if stage == "read" or needed <= max(usable_cores, 1):
        if needed > 64:
            return None
        return Fix(
            text=f"About {needed} workers would keep up with this loop, if nothing else slows them down; measure it.",
            safety="same data for map-style data sets; random transforms draw other numbers; more memory",
            snippet=f"loader = DataLoader(dataset, num_workers={needed},\n                    persistent_workers=True)",
        )
    return Fix(
        text=f"To keep up, {needed} workers would have to compute at the same time, and {usable_cores} "
        f"{'core is' if usable_cores == 1 else 'cores are'} usable here: make a sample cheaper (smaller images, decoding "
        "at a reduced size, a cache of what never changes, random work on the device).",
        safety="depends on what is changed",
    )
