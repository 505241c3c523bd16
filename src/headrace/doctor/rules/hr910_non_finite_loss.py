"""HR910 non-finite-loss: training on a loss that is NaN or infinite."""

from __future__ import annotations

from headrace.doctor.evidence.training import LossTrace
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.samples import listing
from headrace.doctor.wording.training import at

__all__ = ["NonFiniteLoss"]


class NonFiniteLoss(Rule):
    """HR910."""

    code = "HR910"
    name = "non-finite-loss"
    summary = "A backward pass that begins at NaN or infinity, and the samples of its batch."
    rationale = """
        One step on such a loss makes every weight NaN, and the run is lost from then on. Causes: NaN or infinite values
        in the samples, labels outside of the range, a division by the number of something that a batch had none of, the
        logarithm of zero, or a learning rate that is too high. The first bad batch tells which.

        It is no fault if the step is left out, as `GradScaler` does by itself, and the loss is finite again afterwards.
        """
    experiment = """
        The script runs as it is. The value from which each backward pass begins is looked at: each one on the CPU, one
        in 50 on a device, since a look waits for it.
        """
    needs = (LossTrace,)
    fix = Fix(
        text="Look at the samples of that batch first (headrace diagnose names those that hold NaN); if they are in order, "
        "at the loss and the learning rate. Leave out the step until then.",
        safety="a step that is left out uses no samples of that batch",
        snippet="if not torch.isfinite(loss):\n    raise ValueError(f'loss {loss.item()} at step {step}')",
    )
    references = ("Marigold#111", "DeepSpot#9", "Social-STGCNN#20")

    def judge(self, seen: LossTrace) -> list[Finding]:
        """One finding at most: the first such loss is the cause of the others."""
        if seen.first is None or not (seen.was_stepped_on or not seen.is_last_finite):
            return []
        step, kind, place = seen.first
        ids = f" (samples {listing(seen.sample_ids)})" if seen.sample_ids else ""
        before = "" if seen.last_finite is None else f", {seen.last_finite:.4g} before"
        after = "an optimizer stepped on it" if seen.was_stepped_on else "no step used it"
        return [
            Finding(
                message=f"the loss was {kind} at step {step:,}{at(place)}{before}; {after}{ids}",
                severity="error" if not seen.is_last_finite or seen.num_nonfinite > 1 else "warning",
                stage="loss",
                sample_ids=seen.sample_ids,
                where=place,
                evidence={"num_nonfinite": seen.num_nonfinite, "num_read": seen.num_read},
            )
        ]

    sick = (
        Example(
            title="A batch with a bad sample",
            evidence=(
                LossTrace(
                    num_read=40,
                    num_nonfinite=21,
                    first=(19, "nan", "train.py:26"),
                    sample_ids=(7, 12, 3, 9),
                    was_stepped_on=True,
                    is_last_finite=False,
                    last_finite=0.4213,
                ),
            ),
            message="the loss was nan at step 19 at train.py:26, 0.4213 before; an optimizer stepped on it (samples 7, 12, 3, 9)",
            sample_ids=(7, 12, 3, 9),
        ),
        Example(
            title="Infinite from the first step",
            evidence=(
                LossTrace(
                    num_read=3,
                    num_nonfinite=3,
                    first=(0, "inf", "train.py:26"),
                    was_stepped_on=True,
                    is_last_finite=False,
                ),
            ),
            message="the loss was inf at step 0 at train.py:26; an optimizer stepped on it",
        ),
    )
    healthy = (
        Example(
            title="Always finite", evidence=(LossTrace(num_read=40, num_nonfinite=0, first=None, last_finite=0.1),)
        ),
        Example(
            title="One overflow, whose step was left out",
            evidence=(LossTrace(num_read=40, num_nonfinite=1, first=(0, "inf", "train.py:26"), last_finite=None),),
        ),
    )
