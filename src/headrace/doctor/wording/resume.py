"""How findings about resuming speak of the runs."""

from __future__ import annotations

from headrace.doctor.evidence.resume import ResumeRuns, ResumeTrial

__all__ = ["first_of", "interruption", "is_wrong_permutation"]


def interruption(one: ResumeTrial) -> str:
    """Returns `stopped at step 15 and resumed`, for the beginning of a sentence."""
    how = {
        "stopped": "stopped at step {} and resumed",
        "stopped-at-epoch-end": "stopped at step {}, the end of an epoch, and resumed",
        "killed": "killed at step {} and resumed",
        "terminated": "ended by SIGTERM at step {} and resumed",
        "resumed-twice": "resumed, stopped again at step {} and resumed a second time",
        "other-workers": "stopped at step {} and resumed with another number of workers",
    }
    return how[one.kind].format(one.at_step)


def is_wrong_permutation(one: ResumeTrial) -> bool:
    """True if as many batches came as were left of the epoch, but some of their samples had come before."""
    return one.differs == "samples" and one.is_right_number and one.num_repeated > 0


def first_of(seen: ResumeRuns) -> ResumeTrial | None:
    """Returns the trial that shows the fault most plainly; None if all went on exactly, or only workers mattered."""
    faulty = [one for one in seen.trials if one.differs != "nothing" and one.kind != "other-workers"]
    return faulty[0] if faulty else None
