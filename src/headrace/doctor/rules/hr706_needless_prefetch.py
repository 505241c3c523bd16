"""HR706 needless-prefetch: gigabytes of batches made ahead."""

from __future__ import annotations

from headrace.doctor.evidence.system import MachineFacts, Pace
from headrace.doctor.made_up.system import a_machine, a_pace
from headrace.doctor.rule import Example, Finding, Fix, Rule

MIB = 2**20
GIB = 2**30
USUAL = 4
"""Batches ahead per worker that nobody asks about: they bridge a slow sample."""
NOTEWORTHY = GIB // 2
SHARE = 0.1
"""Part of the free memory from which batches ahead are much."""


class NeedlessPrefetch(Rule):
    """HR706."""

    code = "HR706"
    name = "needless-prefetch"
    summary = "A prefetch_factor far above the default, with large batches: memory for nothing."
    rationale = """
        `prefetch_factor` counts batches per worker, not samples. Making more of them ahead does not make them faster: it evens
        out samples that are slow now and then, and a few batches do that. Where workers are the limit the store is empty
        whatever its size; where they are not it is full, and costs its size in memory.

        It is no fault to make small batches far ahead: only those that take a tenth of the free memory, and half a gigabyte
        at least, are named.
        """
    experiment = "Some batches are made and measured."
    needs = (MachineFacts, Pace)
    fix = Fix(
        text="Go back to the default, and raise it only if the loop then waits in bursts (HR814 says so).",
        safety="same data, in the same order",
        snippet="loader = DataLoader(dataset, num_workers=4, prefetch_factor=2)",
    )
    references = ("pytorch#100703", "pytorch#25643", "pytorch#58030")

    def judge(self, machine: MachineFacts, pace: Pace) -> list[Finding]:
        """At most one finding."""
        num_ahead = pace.num_workers * pace.prefetch_factor
        held = num_ahead * pace.batch_bytes
        if pace.prefetch_factor <= USUAL or held < max(NOTEWORTHY, SHARE * machine.free_memory_bytes):
            return []
        return [
            Finding(
                message=f"prefetch_factor={pace.prefetch_factor} with {pace.num_workers} workers keeps {num_ahead:,} batches of "
                f"{pace.batch_bytes / MIB:,.1f} MiB ready: {held / GIB:,.1f} GiB",
                severity="warning",
                basis="experiment",
                confidence=0.8,
                stage="hand-over",
                evidence={"held_bytes": held, "batch_bytes": pace.batch_bytes},
            )
        ]

    sick = (
        Example(
            title="Sixty-four batches ahead for each of four workers",
            evidence=(
                a_machine(free_memory_bytes=32 * GIB),
                a_pace(num_workers=4, prefetch_factor=64, batch_bytes=24 * MIB),
            ),
            message="prefetch_factor=64 with 4 workers keeps 256 batches of 24.0 MiB ready: 6.0 GiB",
        ),
        Example(
            title="Large batches, and little memory",
            evidence=(
                a_machine(free_memory_bytes=4 * GIB),
                a_pace(num_workers=2, prefetch_factor=8, batch_bytes=100 * MIB),
            ),
            message="prefetch_factor=8 with 2 workers keeps 16 batches of 100.0 MiB ready: 1.6 GiB",
        ),
    )
    healthy = (
        Example(
            title="The default",
            evidence=(
                a_machine(free_memory_bytes=4 * GIB),
                a_pace(num_workers=8, prefetch_factor=2, batch_bytes=100 * MIB),
            ),
        ),
        Example(
            title="Many small batches ahead",
            evidence=(
                a_machine(free_memory_bytes=32 * GIB),
                a_pace(num_workers=4, prefetch_factor=64, batch_bytes=64 * 1024),
            ),
        ),
    )
