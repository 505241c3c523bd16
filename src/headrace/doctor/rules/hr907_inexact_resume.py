"""HR907 inexact-resume: a run that is interrupted and goes on is not the run that was never interrupted."""

from __future__ import annotations

from headrace.doctor.evidence.resume import ResumeRuns, ResumeTrial
from headrace.doctor.made_up.resume import resume_runs, trial
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.resume import first_of, interruption, is_wrong_permutation
from headrace.doctor.wording.samples import count, listing

__all__ = ["InexactResume"]


class InexactResume(Rule):
    """HR907."""

    code = "HR907"
    name = "inexact-resume"
    summary = "A resumed run with other samples, another order or other losses than the uninterrupted one."
    rationale = """
        What is not saved begins anew. Without the place in the epoch, samples come twice and others not at all; without
        the random state, each restart repeats the order of the first epoch; without the optimizer, the loss jumps after
        one step. On machines that are taken away every few hours a model then sees the beginning of an epoch many times
        and its end never. A second restart often fails where the first was right, since the place is counted from the
        last start.

        It is no fault to go on from an earlier step, with which the script saved last, and to take the steps since then
        once more. A script that is not repeatable itself is compared by its samples alone.
        """
    experiment = """
        The function is run to its end, twice; then stopped in the middle and at the end of an epoch, killed, and resumed
        from the folder; resumed once more from there. Samples, order and losses of each step are compared with those of
        the whole run. Each run is a process of its own in a folder of its own, which is deleted.
        """
    needs = (ResumeRuns,)
    fix = Fix(
        text="Save the model, the optimizer, the schedule, the random states and the loader's place together, and restore all "
        "of them before the first batch is asked for.",
        safety="resumed runs take other samples than before: those that were left",
        snippet="import torch\n\nstate = {\n    'model': model.state_dict(),\n"
        "    'optimizer': optimizer.state_dict(),\n    'loader': loader.state_dict(),  # of headrace.DataLoader\n"
        "    'random': torch.get_rng_state(),\n    'step': step,\n}",
    )
    references = (
        "Lightning#19764",
        "Lightning#18780",
        "anemoi-core#4",
        "transformers#17032",
        "prime-rl#3332",
        "KempnerForge#57",
        "datasets#7447",
    )

    def judge(self, seen: ResumeRuns) -> list[Finding]:
        """One finding at most: the first interruption that shows it; the others are in its evidence."""
        one = first_of(seen)
        if one is None or is_wrong_permutation(one):
            return []
        others = [other.kind for other in seen.trials if other.differs != "nothing" and other is not one]
        return [
            Finding(
                message=f"{interruption(one)}, the run {_what(one, seen)}",
                basis="experiment",
                confidence=1.0 if seen.repeatable == "losses" else 0.9,
                stage="resume",
                sample_ids=one.sample_ids if seen.ids_known else (),
                where=seen.function,
                evidence={
                    "first_difference": one.first_difference,
                    "num_repeated": one.num_repeated,
                    "num_missing": one.num_missing,
                    "resumed_from": one.resumed_from,
                    "also_in": others,
                },
            )
        ]

    sick = (
        Example(
            title="The loader begins the epoch again",
            evidence=(
                resume_runs(
                    trial(
                        differs="samples",
                        resumed_from=None,
                        first_difference=15,
                        num_repeated=20,
                        num_missing=0,
                        sample_ids=(4, 9, 2, 7, 1),
                        order_of_epoch=1,
                    )
                ),
            ),
            message="stopped at step 15 and resumed, the run has other samples from step 15 on: 20 samples of that epoch came "
            "again (4, 9, 2, 7, 1); it took the order of epoch 1 from its beginning",
            sample_ids=(4, 9, 2, 7, 1),
        ),
        Example(
            title="The optimizer is not restored",
            evidence=(
                resume_runs(
                    trial(differs="loss", first_difference=16, steps_until_loss=1, losses=(0.412, 0.498)),
                    trial("killed", differs="loss", first_difference=16, steps_until_loss=1, losses=(0.412, 0.498)),
                ),
            ),
            message="stopped at step 15 and resumed, the run has another loss at step 16: 0.498 instead of 0.412, on the same "
            "samples; 1 resumed step was equal before, so probably the optimizer or the schedule is not restored",
        ),
        Example(
            title="It begins anew",
            evidence=(resume_runs(trial(differs="anew", resumed_from=0, first_difference=0)),),
            message="stopped at step 15 and resumed, the run began with step 0 again, although something had been saved",
        ),
        Example(
            title="Only the second restart is wrong",
            evidence=(
                resume_runs(
                    trial(),
                    trial("resumed-twice", at=20, differs="order", resumed_from=None, first_difference=20),
                ),
            ),
            message="resumed, stopped again at step 20 and resumed a second time, the run has the samples in another order "
            "from step 20 on",
        ),
    )
    healthy = (
        Example(title="Exact after each interruption", evidence=(resume_runs(trial(), trial("killed")),)),
        Example(
            title="Goes on from the last save, and takes five steps again",
            evidence=(resume_runs(trial(resumed_from=10)),),
        ),
        Example(
            title="Only another number of workers matters: that is HR908",
            evidence=(
                resume_runs(
                    trial(),
                    trial("other-workers", differs="samples", first_difference=15, num_repeated=4, num_workers=(-1, 2)),
                ),
            ),
        ),
    )


def _what(one: ResumeTrial, seen: ResumeRuns) -> str:
    """What is different, for the rest of the sentence."""
    if one.differs == "failed":
        return f"fails: {one.error}"
    if one.differs == "anew":
        return "began with step 0 again, although something had been saved"
    if one.differs == "loss":
        assert one.first_difference is not None
        values = (
            "" if one.losses is None else f": {one.losses[1]:.4g} instead of {one.losses[0]:.4g}, on the same samples"
        )
        if one.steps_until_loss:
            equal = count(one.steps_until_loss, "resumed step")
            why = f"{equal} {'was' if one.steps_until_loss == 1 else 'were'} equal before, so probably the optimizer or the schedule"
        else:
            why = "it is the first resumed step, so probably the model or the random state"
        return f"has another loss at step {one.first_difference:,}{values}; {why} is not restored"
    step = one.first_difference if one.first_difference is not None else one.at_step
    if one.differs == "order":
        kind = "the samples" if seen.ids_known else "the batches"
        return f"has {kind} in another order from step {step:,} on{_which_order(one)}"
    unit = "sample" if seen.ids_known else "batch of samples"
    parts = []
    if one.num_repeated:
        again = f" ({listing(one.sample_ids)})" if seen.ids_known else ""
        parts.append(f"{count(one.num_repeated, unit)} of that epoch came again{again}")
    if one.num_missing:
        parts.append(f"{count(one.num_missing, unit)} never came")
    return f"has other samples from step {step:,} on: {' and '.join(parts) or 'of another epoch'}{_which_order(one)}"


def _which_order(one: ResumeTrial) -> str:
    return "" if one.order_of_epoch is None else f"; it took the order of epoch {one.order_of_epoch} from its beginning"
