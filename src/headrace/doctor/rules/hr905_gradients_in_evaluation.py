"""HR905 gradients-in-evaluation: evaluation that records what only a backward pass would need."""

from __future__ import annotations

from headrace.doctor.evidence.training import ModelTrace, ModelTraces
from headrace.doctor.made_up.training import model, models
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.training import of_kind

__all__ = ["GradientsInEvaluation"]


class GradientsInEvaluation(Rule):
    """HR905."""

    code = "HR905"
    name = "gradients-in-evaluation"
    summary = "Batches of an evaluation loader that go through the model while gradients are recorded."
    rationale = """
        Every layer keeps its input for a backward pass that never comes: evaluation takes up to several times the
        memory, and runs out of it at batch sizes that would fit. A loss that is added up as a tensor keeps the graphs of
        all batches until the end. `model.eval()` does not switch this off.

        It is no fault if derivatives are taken during the evaluation, as adversarial attacks and physical constraints
        need them.
        """
    experiment = """
        The script runs as it is. At each call of the model it is noted whether gradients are recorded, and which loader
        gave the newest batch.
        """
    needs = (ModelTraces,)
    fix = Fix(
        text="Evaluate without recording gradients.",
        safety="same results, less memory and time",
        snippet="@torch.no_grad()\ndef evaluate(model, loader):\n    model.eval()\n    ...",
    )
    references = ("pytorch-3dunet#53", "MultiBench#26")

    def judge(self, seen: ModelTraces) -> list[Finding]:
        """One finding for each model."""
        return [finding for finding in map(_finding, seen.models) if finding is not None]

    sick = (
        Example(
            title="eval without no_grad",
            evidence=(
                models(
                    model(
                        evaluations_with_gradients=20,
                        evaluation_calls=20,
                        evaluation_batches=20,
                        gradients_place="train.py:44",
                    )
                ),
            ),
            message="Net made at train.py:18 recorded gradients in 20 of 20 calls on evaluation batches, and nothing used them",
        ),
        Example(
            title="The last test forgets it",
            evidence=(
                models(
                    model(
                        evaluations_with_gradients=4,
                        evaluation_calls=24,
                        evaluation_batches=24,
                        gradients_place="test.py:9",
                    )
                ),
            ),
            message="Net made at train.py:18 recorded gradients in 4 of 24 calls on evaluation batches, and nothing used them",
        ),
    )
    healthy = (
        Example(title="Under no_grad", evidence=(models(model(evaluation_calls=20, evaluation_batches=20)),)),
        Example(title="No evaluation loader", evidence=(models(),)),
    )


def _finding(one: ModelTrace) -> Finding | None:
    if not one.evaluations_with_gradients:
        return None
    return Finding(
        message=f"{of_kind(one.kind, one.where)} recorded gradients in {one.evaluations_with_gradients:,} of "
        f"{one.evaluation_calls:,} calls on evaluation batches, and nothing used them",
        severity="warning",
        confidence=0.9,
        stage="evaluation",
        where=one.gradients_place,
        evidence={"evaluations_with_gradients": one.evaluations_with_gradients},
    )
