"""HR911 parameters-not-optimised: parameters that training means to change and that never change."""

from __future__ import annotations

from headrace.doctor.evidence.training import ModelTrace, ModelTraces, TrainingTrace
from headrace.doctor.made_up.training import loop, model, models, optimizer
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import count
from headrace.doctor.wording.training import at, of_kind, some

__all__ = ["ParametersNotOptimised"]


class ParametersNotOptimised(Rule):
    """HR911."""

    code = "HR911"
    name = "parameters-not-optimised"
    summary = "Parameters that get gradients and are in no optimizer, or that an optimizer holds and never changes."
    rationale = """
        An optimizer keeps the parameters that it was given. If the head of a network is replaced afterwards, it goes on
        with the old one, and the new one stays as random as it was made. The same happens to a layer in a plain list,
        which `parameters()` does not see, and to a second module that was forgotten. The loss falls, but less far.
        If nothing changes at all, the loss was cut off from the model, for instance by `detach`, or computed from
        numbers instead of tensors.

        It is no fault to train a part of a network whose other weights were loaded; those need no gradients either, which
        `requires_grad_(False)` says and which saves time. Parameters that no loss depends on are not spoken of.
        """
    experiment = """
        The script runs as it is. At the first steps, and more seldom later, it is looked up which parameters have
        gradients, which are in an optimizer, and whether some of their values changed.
        """
    needs = (ModelTraces, TrainingTrace)
    fix = Fix(
        text="Make the optimizer after the model is complete, from all that is to be trained; keep lists of layers in "
        "`nn.ModuleList`.",
        safety="changes the training: these parameters begin to learn",
        snippet="model.head = nn.Linear(512, 10)\noptimizer = torch.optim.AdamW(model.parameters())",
    )
    references = ("pytorch forum: optimizer created before the last layer is replaced", "pytorch#47175")

    def judge(self, seen: ModelTraces, loop: TrainingTrace) -> list[Finding]:
        """One finding for each model at most; parameters left behind explain all others."""
        if not loop.num_steps:
            return []
        lost = [one for one in seen.models if one.unoptimised]
        if seen.num_orphans and lost:
            return [_orphans_finding(seen, lost[0])]
        # Modules that one line made, such as those of a list, are one fault.
        places = {(one.kind, one.where): one for one in lost if one.unoptimised_is_new}
        found = [_lost_finding(one) for one in places.values()]
        cleared = any(one.num_cleared_before_step * 2 >= one.num_steps for one in loop.optimizers)  # that is HR901
        still = [one for one in seen.models if one.never_updated]
        return found + ([] if cleared else [_still_finding(one) for one in still])

    sick = (
        Example(
            title="The head was replaced after the optimizer was made",
            evidence=(
                models(
                    model(unoptimised=("fc.weight", "fc.bias"), unoptimised_is_new=True),
                    num_orphans=2,
                    num_beside_orphans=8,
                    orphans_place="train.py:20",
                ),
                loop(),
            ),
            message="the optimizer made at train.py:20 holds 2 parameters that no module has any more, while fc.weight, "
            "fc.bias of Net made at train.py:18 get gradients and are in no optimizer: they stay as they are",
        ),
        Example(
            title="Layers in a plain list",
            evidence=(
                models(
                    model(),
                    model(
                        number=1,
                        where="train.py:11",
                        kind="Linear",
                        unoptimised=("weight", "bias"),
                        unoptimised_is_new=True,
                        num_optimised=0,
                    ),
                ),
                loop(),
            ),
            message="weight, bias of Linear made at train.py:11 get gradients and are in no optimizer: they stay as random as "
            "they were made",
        ),
        Example(
            title="The loss is cut off from the model",
            evidence=(models(model(never_updated=True, num_reached=0)), loop(optimizer(num_steps_without_gradient=40))),
            message="no parameter of Net made at train.py:18 changed in 40 optimizer steps: no gradient ever reached them",
        ),
    )
    healthy = (
        Example(title="Everything is optimised", evidence=(models(), loop())),
        Example(
            title="A head on a network whose weights were loaded",
            evidence=(models(model(unoptimised=("body.weight",), partly_frozen=True)), loop()),
        ),
        Example(
            title="Gradients cleared before the step: that is HR901",
            evidence=(
                models(model(never_updated=True)),
                loop(optimizer(num_steps_without_gradient=40, num_cleared_before_step=40)),
            ),
        ),
    )


def _orphans_finding(seen: ModelTraces, one: ModelTrace) -> Finding:
    return Finding(
        message=f"the optimizer{' made' if seen.orphans_place else ''}{at(seen.orphans_place)} holds "
        f"{count(seen.num_orphans, 'parameter')} that no module has any more, while {some(one.unoptimised)} of "
        f"{of_kind(one.kind, one.where)} get gradients and are in no optimizer: they stay as they are",
        confidence=0.95,
        stage="optimizer",
        where=seen.orphans_place or one.where,
        evidence={"num_orphans": seen.num_orphans, "parameters": list(one.unoptimised[:50])},
    )


def _lost_finding(one: ModelTrace) -> Finding:
    return Finding(
        message=f"{some(one.unoptimised)} of {of_kind(one.kind, one.where)} get gradients and are in no optimizer: they "
        "stay as random as they were made",
        severity="warning",
        confidence=0.85 if one.num_optimised else 0.7,
        stage="optimizer",
        where=one.where,
        evidence={"parameters": list(one.unoptimised[:50]), "num_optimised": one.num_optimised},
    )


def _still_finding(one: ModelTrace) -> Finding:
    why = "" if one.num_reached else ": no gradient ever reached them"
    return Finding(
        message=f"no parameter of {of_kind(one.kind, one.where)} changed in {count(one.num_steps, 'optimizer step')}{why}",
        confidence=0.9,
        stage="optimizer",
        where=one.where,
        evidence={"num_steps": one.num_steps, "num_reached": one.num_reached},
        fix=Fix(
            text="Follow the loss back to the model: `loss.grad_fn` must not be None, nothing on the way may be detached, "
            "turned into a number, or computed under `torch.no_grad()`; and the gradients must be large enough to count.",
            safety="changes the training: it begins",
        ),
    )
