"""HR401 pageable-copy: copies are asked not to block, from memory from which every copy blocks."""

from __future__ import annotations

from headrace.doctor.evidence.objects import SourceLine, SourceLines
from headrace.doctor.rule import Example, Finding, Fix, Rule


class PageableCopy(Rule):
    """HR401."""

    code = "HR401"
    name = "pageable-copy"
    summary = "Batches are copied with non_blocking=True from memory that is not pinned."
    rationale = """
        A copy from ordinary memory to a CUDA device goes through a buffer of the driver, and the call returns only when the
        data have left: `non_blocking=True` has no effect. With `pin_memory=True` the loader puts batches into locked memory,
        and the copy runs while the device computes.

        It is no fault where nothing is copied: on a machine without an accelerator it is a remark for the one on which the
        script will run.
        """
    experiment = "The source of the user's modules is parsed; the loader is asked whether it pins. Nothing is measured."
    needs = (SourceLines,)
    fix = Fix(
        text="Let the loader pin its batches.",
        safety="same data; locks memory for batches x prefetch_factor x num_workers",
        snippet="loader = DataLoader(dataset, ..., pin_memory=True)",
    )
    references = ("pytorch#48065", "torch-em#357", "tutorials#2983")

    def judge(self, seen: SourceLines) -> list[Finding]:
        """At most one finding, at the first such line."""
        lines = seen.about("non-blocking")
        if not lines or seen.pin_memory:
            return []
        return [
            Finding(
                message=f"{lines[0].text} asks for a copy that does not block, but the loader does not pin its batches",
                severity="info",
                basis="static",
                confidence=0.8,
                stage="transfer",
                where=lines[0].where,
                evidence={"lines": [line.where for line in lines]},
            )
        ]

    sick = (
        Example(
            title="non_blocking without pin_memory",
            evidence=(
                SourceLines(
                    num_workers=2,
                    start_method="fork",
                    pin_memory=False,
                    num_files=1,
                    lines=(
                        SourceLine(
                            topic="non-blocking", where="train.py:40", text="images.to(device, non_blocking=True)"
                        ),
                    ),
                ),
            ),
            message="images.to(device, non_blocking=True) asks for a copy that does not block, but the loader does not pin its "
            "batches",
        ),
        Example(
            title="By the older call",
            evidence=(
                SourceLines(
                    num_workers=0,
                    start_method="fork",
                    pin_memory=False,
                    num_files=1,
                    lines=(SourceLine(topic="non-blocking", where="loop.py:9", text="x.cuda(non_blocking=True)"),),
                ),
            ),
            message="x.cuda(non_blocking=True) asks for a copy that does not block, but the loader does not pin its batches",
        ),
    )
    healthy = (
        Example(
            title="Copies that may block",
            evidence=(SourceLines(num_workers=2, start_method="fork", pin_memory=False, num_files=1),),
        ),
        Example(
            title="Pinned",
            evidence=(
                SourceLines(
                    num_workers=2,
                    start_method="fork",
                    pin_memory=True,
                    num_files=1,
                    lines=(SourceLine(topic="non-blocking", where="train.py:40", text="x.to(d, non_blocking=True)"),),
                ),
            ),
        ),
    )
