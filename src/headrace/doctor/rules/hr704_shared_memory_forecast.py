"""HR704 shared-memory-forecast: the batches that are made ahead do not fit into shared memory."""

from __future__ import annotations

from headrace.doctor.evidence.system import MachineFacts, Pace
from headrace.doctor.made_up.system import a_machine, a_pace
from headrace.doctor.rule import Example, Finding, Fix, Rule

MIB = 2**20
GIB = 2**30
TIGHT = 0.8


class SharedMemoryForecast(Rule):
    """HR704."""

    code = "HR704"
    name = "shared-memory-forecast"
    summary = "Workers x prefetch_factor x batch is more than /dev/shm has room for."
    rationale = """
        Every batch that torch's workers have ready lies in /dev/shm until the loop takes it. If all of them do not fit, a worker
        dies of a bus error; it happens when the loop falls behind for the first time, which may be hours into the run.

        It is no fault while they fit with room to spare.
        """
    experiment = "Some batches are made and measured, and the free size of /dev/shm is read."
    needs = (MachineFacts, Pace)
    fix = Fix(
        text="Make fewer batches ahead, or give the container more shared memory.",
        safety="same data, in the same order",
        snippet="loader = DataLoader(dataset, num_workers=4, prefetch_factor=1)",
    )
    references = ("pytorch#5040", "mmdetection#1997", "Protenix#2", "pipedream#28")

    def judge(self, machine: MachineFacts, pace: Pace) -> list[Finding]:
        """At most one finding."""
        num_ahead = pace.num_workers * pace.prefetch_factor
        if pace.num_batches is not None:
            num_ahead = min(num_ahead, pace.num_batches)
        needed, free = num_ahead * pace.batch_bytes, machine.shm_free_bytes
        if free is None or needed <= TIGHT * free:
            return []
        return [
            Finding(
                message=f"{num_ahead} batches of {pace.batch_bytes / MIB:,.0f} MiB may be ready at once, {needed / MIB:,.0f} MiB; "
                f"shared memory has {free / MIB:,.0f} MiB free",
                severity="error" if needed > free else "warning",
                basis="experiment",
                confidence=0.9,
                stage="hand-over",
                where="shared memory",
                evidence={"needed_bytes": needed, "shm_free_bytes": free, "batch_bytes": pace.batch_bytes},
            )
        ]

    sick = (
        Example(
            title="Eight workers in a container with 64 MiB",
            evidence=(
                a_machine(shm_size_bytes=64 * MIB, shm_free_bytes=64 * MIB),
                a_pace(num_workers=8, prefetch_factor=2, batch_bytes=19 * MIB),
            ),
            message="16 batches of 19 MiB may be ready at once, 304 MiB; shared memory has 64 MiB free",
        ),
        Example(
            title="Just about full",
            evidence=(
                a_machine(shm_size_bytes=GIB, shm_free_bytes=GIB),
                a_pace(num_workers=4, prefetch_factor=4, batch_bytes=60 * MIB),
            ),
            message="16 batches of 60 MiB may be ready at once, 960 MiB; shared memory has 1,024 MiB free",
        ),
    )
    healthy = (
        Example(
            title="Batches that fit",
            evidence=(
                a_machine(shm_size_bytes=8 * GIB, shm_free_bytes=8 * GIB),
                a_pace(num_workers=8, prefetch_factor=2, batch_bytes=19 * MIB),
            ),
        ),
        Example(
            title="Without workers",
            evidence=(
                a_machine(shm_size_bytes=64 * MIB, shm_free_bytes=64 * MIB),
                a_pace(num_workers=0, prefetch_factor=0, batch_bytes=190 * MIB),
            ),
        ),
    )
