"""HR109 stuck-sample: the preparation of a sample does not end."""

from __future__ import annotations

import statistics

from headrace.doctor.evidence import SampleRead, SampleReads
from headrace.doctor.made_up import failed, image, ok, reads
from headrace.doctor.rule import Example, Finding, Fix, Rule

PATIENCE = 20
"""Times the usual duration of a sample that a deadline must be, to call a sample stuck and not slow."""


class StuckSample(Rule):
    """HR109."""

    code = "HR109"
    name = "stuck-sample"
    summary = "A sample whose preparation gives no answer before the deadline."
    rationale = """
        A loop that never ends in an augmentation, a lock that nobody opens, a network read without a timeout: the
        loader waits for one sample, and the loop waits for the loader, at 0 % use and without a message. Raising the
        time limit only postpones it; what helps is the name of the sample and the stack of the code that hangs.

        It is no fault to be slow. A sample that comes out, however late, is not named here. If the other samples need
        a good part of the deadline themselves, the verdict is a warning that says so.
        """
    experiment = """
        Each chosen sample is prepared alone in a child process with a deadline. When it passes, the child writes down
        its Python stack and is ended; the remaining samples go on in a fresh child.
        """
    needs = (SampleReads,)
    fix = Fix(
        text="Look at the innermost line of the stack. Until it is mended, let the loader give up with an "
        "error instead of waiting for ever.",
        safety="same data; the run ends at the stuck sample instead of hanging",
        snippet="loader = DataLoader(dataset, num_workers=2, timeout=60)  # seconds",
    )
    references = ("pytorch#33296", "pytorch#96629", "sd-scripts#536", "pytorch#26072", "accelerate#221")

    def judge(self, seen: SampleReads) -> list[Finding]:
        """One finding for each stuck sample: each has a stack of its own."""
        usual_s = statistics.median(read.wall_s for read in seen.ok) if seen.ok else None
        return [_finding(read, usual_s) for read in seen.reads if read.outcome == "stuck"]

    sick = (
        Example(
            title="An augmentation that retries for ever",
            evidence=(
                reads(
                    ok(image(3, 16, 16), wall_s=0.002),
                    failed(
                        "", stage="transform", outcome="stuck", wall_s=5.0, error_at="aug.py:12 in crop_with_object"
                    ),
                    ok(image(3, 16, 16), wall_s=0.002),
                ),
            ),
            message="sample 1 gave no answer within 5.0 s in stage transform, at aug.py:12 in crop_with_object; half of "
            "the others took under 0.002 s",
            sample_ids=(1,),
        ),
        Example(
            title="No sample answers, so nothing is known of the usual duration",
            evidence=(reads(failed("", outcome="stuck", wall_s=5.0)),),
            message="sample 0 gave no answer within 5.0 s in stage read",
            sample_ids=(0,),
        ),
        Example(
            title="Perhaps only slow: the others need a good part of the deadline",
            evidence=(reads(ok(image(3, 16, 16), wall_s=2.0), failed("", outcome="stuck", wall_s=5.0)),),
            message="sample 1 gave no answer within 5.0 s in stage read; half of the others took under 2 s, so it may "
            "only be slow",
            sample_ids=(1,),
        ),
    )
    healthy = (
        Example(
            title="A slow first sample, while libraries start up",
            evidence=(
                reads(
                    ok(image(3, 16, 16), wall_s=4.2),
                    ok(image(3, 16, 16), wall_s=0.002),
                    ok(image(3, 16, 16), wall_s=0.002),
                ),
            ),
        ),
        Example(
            title="An exception at once: that is HR101",
            evidence=(reads(failed("TimeoutError", "the read timed out"), ok(image(3, 16, 16), wall_s=0.002)),),
        ),
    )


def _finding(read: SampleRead, usual_s: float | None) -> Finding:
    is_perhaps_slow = usual_s is not None and read.wall_s < PATIENCE * usual_s
    place = f", at {read.error_at}" if read.error_at else ""
    others = "" if usual_s is None else f"; half of the others took under {usual_s:.2g} s"
    evidence = {"waited_s": read.wall_s, "usual_s": usual_s, "stack": read.stack}
    return Finding(
        message=f"sample {read.sample_id} gave no answer within {read.wall_s:.1f} s in stage {read.stage}{place}{others}"
        + (", so it may only be slow" if is_perhaps_slow else ""),
        severity="warning" if is_perhaps_slow else "error",
        confidence=0.6 if is_perhaps_slow else 1.0,
        stage=read.stage,
        sample_ids=(read.sample_id,),
        where=read.error_at or read.path,
        evidence={name: value for name, value in evidence.items() if value is not None},
    )
