"""HR901 gradients-not-cleared: steps that use gradients of earlier steps, or none because they were cleared too soon."""

from __future__ import annotations

from headrace.doctor.evidence.training import OptimizerTrace, TrainingTrace
from headrace.doctor.made_up.training import loop, optimizer
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.training import at, of_kind

__all__ = ["GradientsNotCleared"]

FEWEST_STEPS = 3
"""Two steps on one gradient may be meant; from the third on the sum grows."""


class GradientsNotCleared(Rule):
    """HR901."""

    code = "HR901"
    name = "gradients-not-cleared"
    summary = (
        "Optimizer steps whose gradients were not cleared since the step before, or were cleared at the wrong place."
    )
    rationale = """
        `backward` adds to the gradients that are there. Without `zero_grad` each step uses the sum over all batches so
        far: it grows with the number of steps, the loss jumps about or diverges, and nothing says why. The call may be
        missing, stand outside of the loop over batches, or clear another optimizer's parameters.

        Cleared between `backward` and `step`, gradients are lost, and the step changes nothing. Cleared after each
        `backward` although `step` comes only with every fourth batch, three of four batches are lost.

        It is no fault if several backward passes add up before one step that is followed by clearing: that is
        accumulation. How gradients are cleared, and by whom, does not matter.
        """
    experiment = """
        The script runs as it is. At each `backward` and `step`, the gradients of three parameters of each optimizer are
        looked at: whether they are still those that the last step used. Nothing is changed.
        """
    needs = (TrainingTrace,)
    fix = Fix(
        text="Clear the gradients once for each step, before the first backward pass that belongs to it.",
        safety="changes the training: each step uses the gradients of its own batches, so the learning rate may need "
        "another value",
        snippet="for batch in loader:\n    optimizer.zero_grad()\n    loss = compute_loss(model, batch)\n"
        "    loss.backward()\n    optimizer.step()",
    )
    references = ("wekws#72", "pytorch#47175", "torchforge#71", "silero-vad#699", "ultralytics#11217", "RAE#67")

    def judge(self, seen: TrainingTrace) -> list[Finding]:
        """One finding for each optimizer."""
        is_alone = len(seen.optimizers) == 1
        found = [_finding(one, is_alone=is_alone) for one in seen.optimizers]
        return [finding for finding in found if finding is not None]

    sick = (
        Example(
            title="zero_grad is missing",
            evidence=(loop(optimizer(num_clears=0, num_steps_on_used_gradients=39, clear_place=None)),),
            message="SGD made at train.py:20 took 39 of 40 steps on gradients that still held those of the step before: "
            "they were never cleared",
        ),
        Example(
            title="zero_grad stands outside of the loop over batches",
            evidence=(loop(optimizer(num_clears=2, num_steps_on_used_gradients=38)),),
            message="SGD made at train.py:20 took 38 of 40 steps on gradients that still held those of the step before: "
            "they were cleared 2 times",
        ),
        Example(
            title="zero_grad between backward and step",
            evidence=(loop(optimizer(num_steps_without_gradient=40, num_cleared_before_step=40)),),
            message="SGD made at train.py:20 took 40 of 40 steps without any gradient: they were cleared at train.py:25, "
            "after the backward pass and before the step",
        ),
        Example(
            title="zero_grad with each batch, step with each fourth",
            evidence=(loop(optimizer(num_steps=10, num_discarded=30)),),
            message="SGD made at train.py:20 lost the gradients of 30 batches: they were cleared at train.py:25 after "
            "each backward pass, but only 10 steps were taken",
        ),
    )
    healthy = (
        Example(title="Cleared before each step", evidence=(loop(),)),
        Example(title="Accumulation over four batches", evidence=(loop(optimizer(num_steps=10, num_clears=10)),)),
        Example(
            title="Two optimizers of an adversarial pair, of which one clears what the other's loss left",
            evidence=(loop(optimizer(), optimizer(number=1, num_discarded=120)),),
        ),
        Example(
            title="Too few steps to tell",
            evidence=(loop(optimizer(num_steps=2, num_clears=0, num_steps_on_used_gradients=1)),),
        ),
    )


def _finding(one: OptimizerTrace, *, is_alone: bool) -> Finding | None:
    name = of_kind(one.kind, one.where)
    evidence = {"num_steps": one.num_steps, "num_clears": one.num_clears}
    if one.num_steps < FEWEST_STEPS:
        return None
    if one.num_steps_on_used_gradients * 2 >= one.num_steps:
        cleared = (
            f"cleared {one.num_clears:,} time{'' if one.num_clears == 1 else 's'}"
            if one.num_clears
            else "never cleared"
        )
        return Finding(
            message=f"{name} took {one.num_steps_on_used_gradients:,} of {one.num_steps:,} steps on gradients that still "
            f"held those of the step before: they were {cleared}",
            stage="training",
            where=one.step_place,
            evidence=evidence,
        )
    if one.num_cleared_before_step * 2 >= one.num_steps:
        return Finding(
            message=f"{name} took {one.num_steps_without_gradient:,} of {one.num_steps:,} steps without any gradient: they "
            f"were cleared{at(one.clear_place)}, after the backward pass and before the step",
            stage="training",
            where=one.clear_place or one.step_place,
            evidence=evidence,
        )
    # One optimizer only: of a pair, each clears what the other's loss has left in its parameters.
    if is_alone and one.num_discarded * 10 >= one.num_steps * 9:
        return Finding(
            message=f"{name} lost the gradients of {one.num_discarded:,} batches: they were cleared{at(one.clear_place)} "
            f"after each backward pass, but only {one.num_steps:,} steps were taken",
            stage="training",
            confidence=0.9,
            where=one.clear_place or one.step_place,
            evidence={**evidence, "num_discarded": one.num_discarded},
            fix=Fix(
                text="Clear the gradients only after a step, so that those of several batches add up until then.",
                safety="changes the training: each step uses all its batches; divide the loss by their number",
                snippet="loss.backward()\nif (number + 1) % accumulate == 0:\n    optimizer.step()\n"
                "    optimizer.zero_grad()",
            ),
        )
    return None
