"""HR912 schedule-before-step: a learning rate schedule that is ahead of its optimizer, or that drives none."""

from __future__ import annotations

from headrace.doctor.evidence.training import ScheduleTrace, TrainingTrace
from headrace.doctor.made_up.training import loop, optimizer, schedule
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.training import of_kind

__all__ = ["ScheduleBeforeStep"]


class ScheduleBeforeStep(Rule):
    """HR912."""

    code = "HR912"
    name = "schedule-before-step"
    summary = "A learning rate schedule that is stepped before its optimizer, or whose optimizer never steps."
    rationale = """
        Since torch 1.1 a schedule's constructor sets the first learning rate, and `scheduler.step()` sets the next one: it
        belongs behind `optimizer.step()`. The other way round the first value is never used and the whole schedule is one
        ahead. A schedule that was made for an optimizer which is then replaced changes the rate of nothing.

        It is no fault if `GradScaler` leaves out the first steps, or if a schedule is stepped several times before
        training to catch up with an earlier run. ReduceLROnPlateau follows a measure, not a count.
        """
    experiment = """
        The script runs as it is. The order of the steps of schedules and optimizers is noted, without the step that a
        schedule's constructor takes.
        """
    needs = (TrainingTrace,)
    fix = Fix(
        text="Step the schedule after the optimizer.",
        safety="changes the learning rate of each step to the one that was meant",
        snippet="loss.backward()\noptimizer.step()\nscheduler.step()",
    )
    references = ("pytorch#20124", "pytorch documentation: how to adjust learning rate")

    def judge(self, seen: TrainingTrace) -> list[Finding]:
        """One finding for each schedule."""
        found = [_finding(one, seen) for one in seen.schedules]
        return [finding for finding in found if finding is not None]

    sick = (
        Example(
            title="Stepped first in each iteration",
            evidence=(loop(schedules=(schedule(num_early=1, ends_with_optimizer=True),)),),
            message="StepLR made at train.py:21 is stepped at train.py:28 before its optimizer: the first learning rate is "
            "never used, and all later ones come one step too early",
        ),
        Example(
            title="Its optimizer was replaced",
            evidence=(
                loop(
                    optimizer(number=1),
                    schedules=(schedule(num_early=40, num_optimizer_steps=0, is_catching_up=True),),
                ),
            ),
            message="StepLR made at train.py:21 was stepped 40 times, but its optimizer never stepped: the learning rate of "
            "what is trained does not change",
        ),
    )
    healthy = (
        Example(title="Stepped after the optimizer", evidence=(loop(schedules=(schedule(),)),)),
        Example(
            title="Catches up with an earlier run before training",
            evidence=(loop(schedules=(schedule(num_early=5, is_catching_up=True),)),),
        ),
        Example(
            title="A plateau that was measured before training",
            evidence=(loop(schedules=(schedule(kind="ReduceLROnPlateau", num_early=1, ends_with_optimizer=True),)),),
        ),
    )


def _finding(one: ScheduleTrace, seen: TrainingTrace) -> Finding | None:
    name = of_kind(one.kind, one.where)
    evidence = {"num_steps": one.num_steps, "num_optimizer_steps": one.num_optimizer_steps}
    if one.num_optimizer_steps == 0:
        if not seen.num_steps or one.num_steps < 2:
            return None
        return Finding(
            message=f"{name} was stepped {one.num_steps:,} times, but its optimizer never stepped: the learning rate of "
            "what is trained does not change",
            severity="warning",
            confidence=0.85,
            stage="schedule",
            where=one.where,
            evidence=evidence,
        )
    is_ahead = one.num_early == 1 and one.ends_with_optimizer and one.num_steps > 1
    if not is_ahead or one.is_catching_up or one.kind == "ReduceLROnPlateau":
        return None
    return Finding(
        message=f"{name} is stepped{f' at {one.step_place}' if one.step_place else ''} before its optimizer: the first "
        "learning rate is never used, and all later ones come one step too early",
        severity="warning",
        confidence=0.9,
        stage="schedule",
        where=one.step_place,
        evidence=evidence,
    )
