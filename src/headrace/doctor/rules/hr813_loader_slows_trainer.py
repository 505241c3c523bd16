"""HR813 loader-slows-trainer: a step computes longer while the loader works beside it."""

from __future__ import annotations

from headrace.doctor.evidence.stages import StageTimes, StageTrace
from headrace.doctor.made_up.stages import loop, times
from headrace.doctor.questions.waiting import judged, percent, span
from headrace.doctor.rule import Example, Finding, Fix, Rule

SLOWER = 0.10
"""Part by which a step must be longer; a busy machine varies by a few per cent."""


class LoaderSlowsTrainer(Rule):
    """HR813."""

    code = "HR813"
    name = "loader-slows-trainer"
    summary = "Training steps that take longer while the loader's workers compute beside them."
    rationale = """
        A loader that never lets the loop wait may still slow it down: workers take cores from the process that feeds
        the device, threads of theirs take the interpreter's lock, copies take memory bandwidth. The loop's waiting does
        not show it; a step on a batch that is already there does.

        It is no fault if the step takes as long as alone. The two measurements are **not gathered yet**: `headrace watch`
        does not stop a script in order to run its steps alone, so this rule is silent until a command does.
        """
    experiment = "One training step is repeated on one batch, alone and with the loader at work. Not gathered yet."
    needs = (StageTimes,)
    fix = Fix(
        text="Leave the training process a core or two: fewer workers, or one thread in each.",
        safety="same data; fewer workers may let the loop wait",
        snippet="torch.set_num_threads(1)  # in worker_init_fn\n"
        "loader = DataLoader(dataset, num_workers=2)  # fewer than cores",
    )
    references = ("pytorch#12831", "Lightning#17410")

    def judge(self, times: StageTimes) -> list[Finding]:
        """One finding for each such loop."""
        return [finding for trace in judged(times) if (finding := self._judge_one(trace)) is not None]

    def _judge_one(self, trace: StageTrace) -> Finding | None:
        alone_s, beside_s = trace.step_alone_s, trace.step_beside_loader_s
        if alone_s is None or beside_s is None or alone_s <= 0 or beside_s < (1 + SLOWER) * alone_s:
            return None
        return Finding(
            message=f"a training step takes {span(beside_s)} beside the loader and {span(alone_s)} without it: "
            f"{percent(beside_s / alone_s - 1)} more",
            severity="warning",
            confidence=0.8,
            basis="experiment",
            stage="loop",
            where=trace.where,
            evidence={"step_alone_s": alone_s, "step_beside_loader_s": beside_s, "num_workers": trace.num_workers},
        )

    sick = (
        Example(
            title="As many workers as cores",
            evidence=(times(loop(0.0, num_workers=8, step_alone_s=0.08, step_beside_loader_s=0.1)),),
            message="a training step takes 100 ms beside the loader and 80 ms without it: 25 % more",
        ),
        Example(
            title="Threads that share the interpreter",
            evidence=(times(loop(0.0, step_alone_s=0.02, step_beside_loader_s=0.05)),),
            message="a training step takes 50 ms beside the loader and 20 ms without it: 150 % more",
        ),
    )
    healthy = (
        Example(
            title="The same within noise", evidence=(times(loop(0.0, step_alone_s=0.08, step_beside_loader_s=0.083)),)
        ),
        Example(title="Not measured", evidence=(times(loop(0.0)),)),
    )
