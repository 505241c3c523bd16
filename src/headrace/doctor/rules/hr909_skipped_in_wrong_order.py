"""HR909 skipped-in-wrong-order: a resumed run leaves out the right number of batches, of another order."""

from __future__ import annotations

from headrace.doctor.evidence.resume import ResumeRuns
from headrace.doctor.made_up.resume import resume_runs, trial
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.resume import first_of, interruption, is_wrong_permutation
from headrace.doctor.wording.samples import count, listing, verb

__all__ = ["SkippedInWrongOrder"]


class SkippedInWrongOrder(Rule):
    """HR909."""

    code = "HR909"
    name = "skipped-in-wrong-order"
    summary = "A resumed epoch that skips as many batches as had come, but in another shuffled order."
    rationale = """
        Skipping the first k batches is right only if the epoch is shuffled as it was before the interruption. If the
        random state is not restored before the loader draws its order, the run skips k batches of another order: the
        number fits, the progress bar looks right, and part of the epoch comes twice while another part never comes.

        It is no fault to begin the epoch again from its start together with the model of that time.
        """
    experiment = """
        The function is stopped in the middle of an epoch and resumed; the samples of the rest of that epoch are compared
        with those that had come before.
        """
    needs = (ResumeRuns,)
    fix = Fix(
        text="Make the order of an epoch follow from the seed and the number of the epoch alone, and set it before the loader is "
        "walked through.",
        safety="resumed runs take other samples than before: those that were left",
        snippet="generator.manual_seed(seed + epoch)  # that of the loader\n"
        "for number, batch in enumerate(loader):\n    if epoch == first_epoch and number < batches_done:\n"
        "        continue",
    )
    references = ("accelerate#4233", "accelerate#4203", "transformers#46628")

    def judge(self, seen: ResumeRuns) -> list[Finding]:
        """One finding at most."""
        one = first_of(seen)
        if one is None or not is_wrong_permutation(one):
            return []
        kind = "sample" if seen.ids_known else "batch"
        again = f" ({listing(one.sample_ids)})" if seen.ids_known else ""
        return [
            Finding(
                message=f"{interruption(one)}, the run skips the right number of batches, but of another order: "
                f"{count(one.num_repeated, kind)} of that epoch {verb(one.num_repeated, 'comes', 'come')} again{again} and "
                f"{one.num_missing:,} never {verb(one.num_missing, 'comes', 'come')}",
                basis="experiment",
                confidence=1.0 if seen.repeatable != "nothing" else 0.9,
                stage="resume",
                sample_ids=one.sample_ids if seen.ids_known else (),
                where=seen.function,
                evidence={"first_difference": one.first_difference, "resumed_from": one.resumed_from},
            )
        ]

    sick = (
        Example(
            title="The random state is restored after the order was drawn",
            evidence=(
                resume_runs(
                    trial(
                        differs="samples",
                        resumed_from=None,
                        first_difference=15,
                        num_repeated=11,
                        num_missing=11,
                        sample_ids=(3, 17, 20),
                        is_right_number=True,
                    )
                ),
            ),
            message="stopped at step 15 and resumed, the run skips the right number of batches, but of another order: 11 samples "
            "of that epoch come again (3, 17, 20) and 11 never come",
            sample_ids=(3, 17, 20),
        ),
        Example(
            title="Killed, in a script that is not repeatable",
            evidence=(
                resume_runs(
                    trial(
                        "killed",
                        differs="samples",
                        first_difference=15,
                        num_repeated=1,
                        num_missing=1,
                        sample_ids=(3,),
                        is_right_number=True,
                    ),
                    repeatable="nothing",
                ),
            ),
            message="killed at step 15 and resumed, the run skips the right number of batches, but of another order: 1 sample of "
            "that epoch comes again (3) and 1 never comes",
            sample_ids=(3,),
        ),
    )
    healthy = (
        Example(title="Exact", evidence=(resume_runs(),)),
        Example(
            title="The epoch begins again: that is HR907",
            evidence=(resume_runs(trial(differs="samples", first_difference=15, num_repeated=20)),),
        ),
    )
