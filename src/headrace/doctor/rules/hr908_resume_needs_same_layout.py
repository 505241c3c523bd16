"""HR908 resume-needs-same-layout: a run that goes on exactly, but only with the same number of workers."""

from __future__ import annotations

from headrace.doctor.evidence.resume import ResumeRuns
from headrace.doctor.made_up.resume import resume_runs, trial
from headrace.doctor.rule import Example, Finding, Fix, Rule
from headrace.doctor.wording.resume import first_of
from headrace.doctor.wording.samples import count, verb

__all__ = ["ResumeNeedsSameLayout"]


class ResumeNeedsSameLayout(Rule):
    """HR908."""

    code = "HR908"
    name = "resume-needs-same-layout"
    summary = "A saved state that only fits the number of workers with which it was saved."
    rationale = """
        A state that is kept per worker says how far each worker had come. On a machine with other cores it is refused, or
        dealt out anew: then samples come twice and others never. The number of workers belongs to the machine, not to
        the experiment.

        It is no fault if the function takes no number of workers, or if it does not resume exactly with the same number
        either: then the cause is another one, and HR907 speaks of it.
        """
    experiment = """
        A run that was stopped in the middle of an epoch is resumed with two workers and with none, from copies of the same
        folder, and compared with the whole run.
        """
    needs = (ResumeRuns,)
    fix = Fix(
        text="Save how many samples were delivered, in the order of the epoch, and not what each worker did.",
        safety="old states may no longer be readable",
        snippet="import headrace\n\nloader = headrace.DataLoader(data, batch_size=32, shuffle=True, seed=0)\n"
        "state = loader.state_dict()  # fits any number of workers",
    )
    references = ("litData#878", "litData#248", "streaming#869")

    def judge(self, seen: ResumeRuns) -> list[Finding]:
        """One finding at most."""
        bad = [one for one in seen.trials if one.kind == "other-workers" and one.differs not in {"nothing", "loss"}]
        if not bad or first_of(seen) is not None:
            return []
        one = bad[0]
        workers = one.num_workers[1] if one.num_workers else 0
        if one.differs == "failed":
            what = f"fails: {one.error}"
        elif one.num_repeated or one.num_missing:
            again = f"{count(one.num_repeated, 'sample')} {verb(one.num_repeated, 'comes', 'come')} again"
            what = f"has other samples: {again}, {one.num_missing:,} never"
        else:
            what = "has another order"
        return [
            Finding(
                message=f"resumed at step {one.at_step:,} with {count(workers, 'worker')} the run {what}; with its own number of "
                "workers it goes on exactly",
                basis="experiment",
                stage="resume",
                sample_ids=one.sample_ids if seen.ids_known else (),
                where=seen.function,
                evidence={"num_workers": workers, "first_difference": one.first_difference},
            )
        ]

    sick = (
        Example(
            title="Samples come twice with two workers",
            evidence=(
                resume_runs(
                    trial(),
                    trial(
                        "other-workers",
                        differs="samples",
                        first_difference=15,
                        num_repeated=8,
                        num_missing=8,
                        sample_ids=(3, 1),
                        num_workers=(-1, 2),
                    ),
                ),
            ),
            message="resumed at step 15 with 2 workers the run has other samples: 8 samples come again, 8 never; with its own "
            "number of workers it goes on exactly",
            sample_ids=(3, 1),
        ),
        Example(
            title="The state is refused",
            evidence=(
                resume_runs(
                    trial(),
                    trial(
                        "other-workers",
                        differs="failed",
                        resumed_from=None,
                        error="ValueError: expected 4 worker states, got 2",
                        num_workers=(-1, 2),
                    ),
                ),
            ),
            message="resumed at step 15 with 2 workers the run fails: ValueError: expected 4 worker states, got 2; with its own "
            "number of workers it goes on exactly",
        ),
    )
    healthy = (
        Example(
            title="Any number of workers fits",
            evidence=(resume_runs(trial(), trial("other-workers", num_workers=(-1, 2))),),
        ),
        Example(
            title="Inexact with the same number, too: that is HR907",
            evidence=(
                resume_runs(
                    trial(differs="samples", first_difference=15, num_repeated=4),
                    trial("other-workers", differs="samples", first_difference=15, num_repeated=4, num_workers=(-1, 2)),
                ),
            ),
        ),
        Example(
            title="Random augmentation in the workers makes another loss",
            evidence=(
                resume_runs(trial(), trial("other-workers", differs="loss", first_difference=15, num_workers=(-1, 2))),
            ),
        ),
    )
