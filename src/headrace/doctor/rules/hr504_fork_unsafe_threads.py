"""HR504 fork-unsafe-threads: forked workers are handed threads that are not there, or locks that nobody opens."""

from __future__ import annotations

from headrace.doctor.evidence.objects import HeldObjects, ThreadHeld
from headrace.doctor.rule import Example, Finding, Fix, Rule

EFFECTS = {
    "thread": "a fork does not copy threads: in a worker nobody does its work",
    "thread pool": "its threads are not copied by a fork: what a worker submits is never run",
    "held lock": "it is locked while workers are forked, and in them nobody will ever open it",
}


class ForkUnsafeThreads(Rule):
    """HR504."""

    code = "HR504"
    name = "fork-unsafe-threads"
    summary = (
        "A running thread, a thread pool or a lock that is held, which forked workers inherit without its other half."
    )
    rationale = """
        A fork copies memory, but of all threads only the one that forks. A data set that hands work to a thread of its own, or
        to a pool whose threads have started, waits in a worker for an answer that never comes; a lock that was held at that
        moment stays locked for ever. The loader hangs at 0 % use, without a message, and only with workers.

        It is no fault to hold a pool that has not started any thread yet.
        """
    experiment = (
        "The objects that data set, transforms and collate function hold are walked through before any worker starts."
    )
    needs = (HeldObjects,)
    fix = Fix(
        text="Start threads in the worker: at the first read, or in worker_init_fn; or start workers by "
        'multiprocessing_context="forkserver".',
        safety="same data",
        snippet="def __getitem__(self, index):\n"
        "    if self.pool is None:  # each worker has its own\n"
        "        self.pool = ThreadPoolExecutor(4)",
    )
    references = ("pytorch#1355", "pytorch#1838", "pytorch#45198", "tokenizers#258", "pytorch#130610")

    def judge(self, seen: HeldObjects) -> list[Finding]:
        """One finding, for the first of each kind."""
        if seen.start_method not in {"fork", None} or not seen.threads:
            return []
        first = seen.threads[0]
        name = f" ({first.name})" if first.name else ""
        later = "" if seen.num_workers else ": fine without workers, not with them"
        return [
            Finding(
                message=f"{first.path} is a {_kind(first)}{name}; {EFFECTS[first.kind]}{later}",
                severity="warning" if seen.num_workers else "info",
                basis="observed",
                confidence=0.8,
                stage="start of workers",
                where=first.path,
                evidence={"held": [held.path for held in seen.threads]},
            )
        ]

    sick = (
        Example(
            title="A pool that has already read ahead",
            evidence=(
                HeldObjects(
                    num_workers=2,
                    start_method="fork",
                    threads=(ThreadHeld(path="dataset.pool", kind="thread pool", name=None),),
                ),
            ),
            message="dataset.pool is a running thread pool; its threads are not copied by a fork: what a worker submits is "
            "never run",
        ),
        Example(
            title="A lock that is held",
            evidence=(
                HeldObjects(
                    num_workers=2,
                    start_method="fork",
                    threads=(ThreadHeld(path="dataset.lock", kind="held lock", name=None),),
                ),
            ),
            message="dataset.lock is a held lock; it is locked while workers are forked, and in them nobody will ever open it",
        ),
    )
    healthy = (
        Example(
            title="Spawned workers make their own",
            evidence=(
                HeldObjects(
                    num_workers=2,
                    start_method="spawn",
                    threads=(ThreadHeld(path="dataset.pool", kind="thread pool", name=None),),
                ),
            ),
        ),
        Example(title="Nothing is held", evidence=(HeldObjects(num_workers=2, start_method="fork"),)),
    )


def _kind(held: ThreadHeld) -> str:
    return "held lock" if held.kind == "held lock" else f"running {held.kind}"
