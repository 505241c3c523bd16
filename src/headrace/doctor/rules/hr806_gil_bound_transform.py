"""HR806 gil-bound-transform: threads that prepare samples take turns, because Python's lock is held."""

from __future__ import annotations

from headrace.doctor.evidence.system import ThreadPace
from headrace.doctor.rule import Example, Finding, Fix, Rule

COMPUTES = 0.7
"""Cores that a thread alone asks for, from which it computes and does not wait."""
TURNS = 1.3
"""Cores that two threads ask for, up to which they take turns: about 1.5 if they hold the lock half of the time. What they
get of them says nothing: others may keep the cores busy, then or while one thread ran alone."""


class GilBoundTransform(Rule):
    """HR806."""

    code = "HR806"
    name = "gil-bound-transform"
    summary = "Samples prepared in threads by code that holds Python's interpreter lock: more threads bring nothing."
    rationale = """
        Python lets one thread at a time run Python code. Decoders, numpy, torch and reading from disk release that lock while
        they work, and then threads share the cores; a transform that is a loop in Python, or a library that keeps the lock
        (numpy.load on compressed archives, many parsers), makes them take turns, and the training thread with them.

        It is no fault if samples wait for storage, or if threads are used for one worker only.
        """
    experiment = """
        Samples are prepared by one thread, then by two at once, in one process, for a second each. Compared are the cores
        that they run on or wait for, so that other load on the machine does not matter.
        """
    needs = (ThreadPace,)
    fix = Fix(
        text="Prepare samples in processes, or let the transform work on whole arrays.",
        safety="same data, in the same order",
        snippet='loader = headrace.DataLoader(plan, num_workers=2, runner="processes")',
    )
    references = ("SPDL, documentation on numpy.load and the GIL", "pytorch#46867")

    def judge(self, pace: ThreadPace) -> list[Finding]:
        """At most one finding."""
        if pace.num_threads < 2 or pace.alone_share < COMPUTES or pace.together_share > TURNS:
            return []
        return [
            Finding(
                message=f"samples are prepared by {pace.num_threads} threads (runner {pace.runner!r}) that take turns: two of them "
                f"ask for {pace.together_share:.1f} cores",
                severity="warning",
                basis="experiment",
                confidence=0.85,
                stage="transform",
                evidence={"alone_share": pace.alone_share, "together_share": pace.together_share},
            )
        ]

    sick = (
        Example(
            title="A transform that is a loop in Python",
            evidence=(
                ThreadPace(runner="threads", num_threads=4, num_samples=90, alone_share=0.98, together_share=1.02),
            ),
            message="samples are prepared by 4 threads (runner 'threads') that take turns: two of them ask for 1.0 cores",
        ),
        Example(
            title="The same in one other process",
            evidence=(ThreadPace(runner="host", num_threads=2, num_samples=40, alone_share=0.9, together_share=1.2),),
            message="samples are prepared by 2 threads (runner 'host') that take turns: two of them ask for 1.2 cores",
        ),
    )
    healthy = (
        Example(
            title="A decoder that releases the lock",
            evidence=(
                ThreadPace(runner="threads", num_threads=4, num_samples=90, alone_share=0.97, together_share=1.9),
            ),
        ),
        Example(
            title="Two threads that wait for one core, because others keep the rest busy",
            evidence=(
                ThreadPace(runner="threads", num_threads=2, num_samples=20, alone_share=1.0, together_share=1.9),
            ),
        ),
        Example(
            title="Reads that wait",
            evidence=(
                ThreadPace(runner="threads", num_threads=16, num_samples=9, alone_share=0.05, together_share=1.8),
            ),
        ),
    )
