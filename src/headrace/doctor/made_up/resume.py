"""Made-up evidence about resuming. Nothing here is measured."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.resume import ResumeRuns, ResumeTrial

__all__ = ["resume_runs", "trial"]


def trial(kind: str = "stopped", *, at: int = 15, **more: Any) -> ResumeTrial:
    """A run that went on exactly."""
    facts: dict[str, Any] = {"resumed_from": at, "num_compared": 10, "differs": "nothing"}
    return ResumeTrial(kind=kind, at_step=at, **facts | more)  # type: ignore[arg-type] # one of its literals


def resume_runs(*trials: ResumeTrial, **more: Any) -> ResumeRuns:
    """Trials of a function with ten steps per epoch."""
    facts: dict[str, Any] = {
        "function": "train.py:train",
        "num_steps": 26,
        "steps_per_epoch": 10,
        "ids_known": True,
        "repeatable": "losses",
    }
    return ResumeRuns(**facts | more, trials=trials or (trial(),))
