"""HR902 stuck-in-eval-mode: a model that trains on in evaluation mode, without dropout and with frozen batch norm."""

from __future__ import annotations

from headrace.doctor.evidence.training import ModelTrace, ModelTraces
from headrace.doctor.made_up.training import model, models
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.training import at, of_kind, some

__all__ = ["StuckInEvalMode"]


class StuckInEvalMode(Rule):
    """HR902."""

    code = "HR902"
    name = "stuck-in-eval-mode"
    summary = "Optimizer steps taken while the whole model is in evaluation mode."
    rationale = """
        `model.eval()` switches dropout off and makes batch norm use its stored statistics. A validation function that
        calls it and does not switch back leaves all later epochs without regularisation and with statistics that no
        longer follow the data. Nothing fails: the training loss even looks better.

        It is no fault if only parts are in evaluation mode, as when the batch norms of a pre-trained network are kept,
        if nothing in the model depends on the mode, or if the switch is undone before the next step. A model that is
        trained in evaluation mode from the first step on, with most of it frozen, is taken as meant.
        """
    experiment = """
        The script runs as it is. The mode of each model is noted at each backward pass, and where it was switched.
        Nothing is changed.
        """
    needs = (ModelTraces,)
    fix = Fix(
        text="Switch back where training goes on: at the top of each epoch, or at the end of the validation function.",
        safety="changes the training: dropout and batch norm work as meant",
        snippet="for epoch in range(epochs):\n    model.train()\n    for batch in train_loader:\n        ...\n"
        "    validate(model)",
    )
    references = ("joeynmt#184", "simpletransformers#941", "ncsn#2", "pytorch-fcn#57", "clevr-iep#22")

    def judge(self, seen: ModelTraces) -> list[Finding]:
        """One finding for each model."""
        return [finding for finding in map(_finding, seen.models) if finding is not None]

    sick = (
        Example(
            title="A validation that never switches back",
            evidence=(
                models(
                    model(
                        steps_training=10,
                        steps_in_eval_mode=30,
                        first_step_in_eval_mode=10,
                        trained_before=True,
                        ends_in_eval_mode=True,
                        stuck_since="train.py:40",
                    )
                ),
            ),
            message="Net made at train.py:18 took 30 of 40 optimizer steps in evaluation mode, from step 10 on: it was "
            "switched at train.py:40 and not back; drop (Dropout) does not work as in training",
        ),
        Example(
            title="A first check of the metric, before training",
            evidence=(
                models(
                    model(
                        steps_training=0,
                        steps_in_eval_mode=40,
                        first_step_in_eval_mode=0,
                        ends_in_eval_mode=True,
                        evaluated_before_stuck=True,
                        stuck_since="train.py:40",
                    )
                ),
            ),
            message="Net made at train.py:18 took all 40 optimizer steps in evaluation mode: it was switched at "
            "train.py:40 and not back; drop (Dropout) does not work as in training",
        ),
    )
    healthy = (
        Example(title="Training mode in each step", evidence=(models(),)),
        Example(
            title="Nothing in it depends on the mode",
            evidence=(models(model(mode_sensitive=(), steps_training=0, steps_in_eval_mode=40)),),
        ),
        Example(
            title="Fine-tuning of the head of a frozen network, in evaluation mode from the start",
            evidence=(
                models(model(steps_training=0, steps_in_eval_mode=40, first_step_in_eval_mode=0, partly_frozen=True)),
            ),
        ),
    )


def _finding(one: ModelTrace) -> Finding | None:
    total = one.steps_training + one.steps_in_eval_mode
    if not one.steps_in_eval_mode or not one.mode_sensitive:
        return None
    if one.trained_before:
        is_stuck = one.ends_in_eval_mode or one.steps_in_eval_mode * 5 >= total
        severity, confidence = "error", 0.95 if is_stuck else 0.8
    elif one.evaluated_before_stuck:
        severity, confidence = "error", 0.85
    elif one.partly_frozen:
        return None
    else:
        severity, confidence = "warning", 0.6
    since = f", from step {one.first_step_in_eval_mode:,} on" if one.trained_before else ""
    share = f"{one.steps_in_eval_mode:,} of {total:,}" if one.steps_training else f"all {total:,}"
    back = "" if one.steps_training and not one.ends_in_eval_mode else " and not back"
    switched = f"it was switched{at(one.stuck_since)}{back}" if one.stuck_since else "it was never switched to training"
    return Finding(
        message=f"{of_kind(one.kind, one.where)} took {share} optimizer steps in evaluation mode{since}: {switched}; "
        f"{some(one.mode_sensitive)} {'does' if len(one.mode_sensitive) == 1 else 'do'} not work as in training",
        severity="error" if severity == "error" else "warning",
        confidence=confidence,
        stage="training",
        where=one.stuck_since or one.where,
        evidence={"steps_in_eval_mode": one.steps_in_eval_mode, "num_steps": total},
    )
