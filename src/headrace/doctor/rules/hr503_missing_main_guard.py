"""HR503 missing-main-guard: workers import the script, and the script starts workers."""

from __future__ import annotations

from headrace.doctor.evidence.objects import SourceLine, SourceLines
from headrace.doctor.rule import Example, Finding, Fix, Rule


class MissingMainGuard(Rule):
    """HR503."""

    code = "HR503"
    name = "missing-main-guard"
    summary = "A loop over a loader with workers that runs while its module is imported."
    rationale = """
        A worker that is spawned, or started by a fork server, imports the main script. If the loop over the loader stands at
        the top of that script, the worker starts the loop, which would start workers: Python stops it with a "bootstrapping
        phase" error, or the script runs several times.

        It is no fault with forked workers, which import nothing; there it is a remark: the script will fail on Windows and macOS, and by default
        from Python 3.14 on. What stands in a function that only guarded code calls is healthy.
        """
    experiment = "The source of the user's modules is parsed; nothing of it is run."
    needs = (SourceLines,)
    fix = Fix(
        text="Put what runs under the main guard.",
        safety="same data",
        snippet='def main():\n    for batch in loader:\n        ...\n\n\nif __name__ == "__main__":\n    main()',
    )
    references = ("BPR-pytorch#1", "MPRNet#114", "DID-MDN#3")

    def judge(self, seen: SourceLines) -> list[Finding]:
        """At most one finding, at the first such line."""
        lines = seen.about("unguarded-loop")
        if not lines:
            return []
        fails_now = seen.num_workers > 0 and seen.start_method in {"spawn", "forkserver"}
        first = lines[0]
        inside = f" (in {first.function}, called at the top)" if first.function else ""
        effect = (
            f"its workers ({seen.start_method}) import this file and would start it again"
            if fails_now
            else "fails where workers are no forks: Windows, macOS, Python 3.14"
        )
        return [
            Finding(
                message=f"the loop over {first.text}{inside} runs while the module is imported: {effect}",
                severity="error" if fails_now else "info",
                basis="static",
                confidence=0.9,
                stage="start of workers",
                where=first.where,
                evidence={"lines": [line.where for line in lines]},
            )
        ]

    sick = (
        Example(
            title="A training loop at the top of the script, and spawned workers",
            evidence=(
                SourceLines(
                    num_workers=2,
                    start_method="spawn",
                    pin_memory=False,
                    num_files=1,
                    lines=(SourceLine(topic="unguarded-loop", where="train.py:30", text="loader"),),
                ),
            ),
            message="the loop over loader runs while the module is imported: its workers (spawn) import this file and would "
            "start it again",
        ),
        Example(
            title="Forked workers: a remark",
            evidence=(
                SourceLines(
                    num_workers=2,
                    start_method="fork",
                    pin_memory=False,
                    num_files=1,
                    lines=(
                        SourceLine(
                            topic="unguarded-loop", where="train.py:12", text="enumerate(loader)", function="train"
                        ),
                    ),
                ),
            ),
            message="the loop over enumerate(loader) (in train, called at the top) runs while the module is imported: fails "
            "where workers are no forks: Windows, macOS, Python 3.14",
        ),
    )
    healthy = (
        Example(
            title="No loop runs while importing, and no workers",
            evidence=(SourceLines(num_workers=0, start_method="fork", pin_memory=False, num_files=3),),
        ),
        Example(
            title="Everything is under the guard",
            evidence=(SourceLines(num_workers=2, start_method="spawn", pin_memory=False, num_files=1),),
        ),
    )
