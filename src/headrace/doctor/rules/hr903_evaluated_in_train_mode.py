"""HR903 evaluated-in-train-mode: evaluation with dropout at work, or with batch norm that learns from it."""

from __future__ import annotations

from headrace.doctor.evidence.training import ModelTrace, ModelTraces
from headrace.doctor.made_up.training import model, models
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.training import of_kind, some

__all__ = ["EvaluatedInTrainMode"]


class EvaluatedInTrainMode(Rule):
    """HR903."""

    code = "HR903"
    name = "evaluated-in-train-mode"
    summary = "Batches of an evaluation loader that go through the model while it is in training mode."
    rationale = """
        In training mode dropout removes values at random, and batch norm normalises by the batch at hand: the measured
        accuracy depends on chance and on the batch size, and is usually too low. Batch norm also takes the evaluation
        samples into its statistics, so the evaluation changes the model. `torch.no_grad()` does not help: it only
        switches gradients off.

        It is no fault if nothing in the model depends on the mode, or if each batch goes through the model several
        times to measure its uncertainty by dropout.
        """
    experiment = """
        The script runs as it is. At each call of the model its mode is noted, and which loader gave the newest batch.
        A loader is an evaluation loader if others are trained on and no step and no backward pass follows its batches.
        """
    needs = (ModelTraces,)
    fix = Fix(
        text="Switch to evaluation mode before evaluating, and back afterwards.",
        safety="the same training; the measure becomes that of the model as it is used",
        snippet="model.eval()\nwith torch.no_grad():\n    for batch in val_loader:\n        ...\nmodel.train()",
    )
    references = ("pytorch-3dunet#53", "MultiBench#26", "deep-learning-v2-pytorch#3")

    def judge(self, seen: ModelTraces) -> list[Finding]:
        """One finding for each model."""
        return [finding for finding in map(_finding, seen.models) if finding is not None]

    sick = (
        Example(
            title="no_grad without eval",
            evidence=(
                models(
                    model(
                        evaluated_in_train_mode=20,
                        evaluation_calls=20,
                        evaluation_batches=20,
                        train_mode_place="train.py:44",
                    )
                ),
            ),
            message="Net made at train.py:18 was in training mode for 20 of 20 calls on evaluation batches: "
            "drop (Dropout) changed the result",
        ),
        Example(
            title="Batch norm takes the evaluation samples in",
            evidence=(
                models(
                    model(
                        mode_sensitive=("bn (BatchNorm2d)",),
                        batch_norms=("bn (BatchNorm2d)",),
                        evaluated_in_train_mode=5,
                        evaluation_calls=20,
                        evaluation_batches=20,
                        train_mode_place="train.py:44",
                    )
                ),
            ),
            message="Net made at train.py:18 was in training mode for 5 of 20 calls on evaluation batches: "
            "bn (BatchNorm2d) learnt from them",
        ),
    )
    healthy = (
        Example(
            title="Evaluated in evaluation mode", evidence=(models(model(evaluation_calls=20, evaluation_batches=20)),)
        ),
        Example(
            title="Ten passes with dropout over each batch, to measure uncertainty",
            evidence=(models(model(evaluated_in_train_mode=200, evaluation_calls=200, evaluation_batches=20)),),
        ),
    )


def _finding(one: ModelTrace) -> Finding | None:
    if not one.evaluated_in_train_mode or not one.mode_sensitive:
        return None
    if not one.batch_norms and one.evaluation_calls >= 3 * one.evaluation_batches:
        return None
    if one.batch_norms:
        effect = f"{some(one.batch_norms)} learnt from them"
    else:
        effect = f"{some(one.mode_sensitive)} changed the result"
    return Finding(
        message=f"{of_kind(one.kind, one.where)} was in training mode for {one.evaluated_in_train_mode:,} of "
        f"{one.evaluation_calls:,} calls on evaluation batches: {effect}",
        confidence=0.9,
        stage="evaluation",
        where=one.train_mode_place,
        evidence={"evaluated_in_train_mode": one.evaluated_in_train_mode, "evaluation_calls": one.evaluation_calls},
    )
