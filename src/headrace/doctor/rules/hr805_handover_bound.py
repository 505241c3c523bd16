"""HR805 handover-bound: a loop that waits for batches that are ready, but still on their way from the worker."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times, workers
from headrace.doctor.questions.waiting import judged, percent, span, stage_of, waiting_kind
from headrace.doctor.rule import Example, Finding, Fix, Rule


class HandoverBound(Rule):
    """HR805."""

    code = "HR805"
    name = "handover-bound"
    summary = "A starved loop whose batches are ready in time and take long from the worker to the loop."
    rationale = """
        A batch travels from a worker through a pipe. Tensors go by shared memory, which is quick; everything else,
        arrays, lists, dictionaries of strings, images as objects, is pickled, copied through the pipe and rebuilt in the
        training process, which can do nothing else meanwhile. More workers do not help, because the training process
        itself is the limit; so is one thread that pins the batches.

        It is no fault if the loop does not wait for it: large batches may take their time as long as one is always
        there. Nor is it one if the training process computes hardly anything to take them: on a busy machine it is then not
        woken in time.
        """
    experiment = "Nothing is run: workers note when a batch is ready, the loop when it gets it, on one clock."
    needs = (StageTimes,)
    fix = Fix(
        text="Hand over few tensors instead of many objects: collate to tensors, use smaller types (uint8 images, "
        "normalised on the device), leave out what the loop does not use.",
        safety="same data if the values stay equal",
        snippet="def collate(samples):\n"
        "    images = torch.stack([image for image, _ in samples])  # uint8\n"
        "    return images, torch.tensor([label for _, label in samples])",
    )
    references = ("pytorch#100703", "pytorch#58030", "Lightning#17410")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [
            self._finding(trace, stage[1])
            for trace in judged(times)
            if waiting_kind(trace) == "starved" and (stage := stage_of(trace)) is not None and stage[0] == "hand-over"
        ]

    def _finding(self, trace: StageTrace, part: float) -> Finding:
        size = "" if trace.batch_bytes is None else f" ({_size(trace.batch_bytes)} of it in tensors and arrays)"
        return Finding(
            message=f"batches are ready and on their way in {percent(part)} of the waiting: "
            f"{span((trace.handover_s or 0.0) / trace.num_batches)} for each batch{size}",
            severity="warning",
            confidence=0.8,
            basis="observed",
            stage="hand-over",
            where=trace.where,
            evidence={
                "handover_s": trace.handover_s,
                "wait_s": trace.wait_s,
                "num_batches": trace.num_batches,
                "batch_bytes": trace.batch_bytes,
            },
        )

    sick = (
        Example(
            title="Large arrays through the pipe",
            evidence=(times(loop(0.4, handover_s=18.0, workers=workers(0.05, 0.05, idle_s=20.0))),),
            message="batches are ready and on their way in 90 % of the waiting: 36 ms for each batch (18.4 MiB of it in "
            "tensors and arrays)",
        ),
        Example(
            title="Batches of plain objects, whose size is not known",
            evidence=(
                times(
                    loop(
                        0.3,
                        handover_s=9.0,
                        handover_cpu_s=6.0,
                        batch_bytes=None,
                        workers=workers(0.05, 0.05, idle_s=20.0),
                    )
                ),
            ),
            message="batches are ready and on their way in 60 % of the waiting: 18 ms for each batch",
        ),
    )
    healthy = (
        Example(title="Batches that come at once", evidence=(times(loop(0.4)),)),
        Example(
            title="Workers that are busy all the time: they are the limit, whatever the way takes",
            evidence=(times(loop(0.4, handover_s=18.0)),),
        ),
        Example(
            title="A busy machine: batches are there, and the loop that waits for a core computes hardly anything to get them",
            evidence=(times(loop(0.11, handover_s=5.5, handover_cpu_s=4.0, workers=workers(0.05, 0.05, idle_s=20.0))),),
        ),
        Example(title="A hand-over that the loop does not feel", evidence=(times(loop(0.02, handover_s=0.9)),)),
    )


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 2**20:,.1f} MiB" if num_bytes >= 2**20 else f"{num_bytes / 2**10:,.1f} KiB"
