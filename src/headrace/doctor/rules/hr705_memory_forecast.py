"""HR705 memory-forecast: each sample leaves memory behind, and there is not enough for all of them."""

from __future__ import annotations

import itertools

from headrace.doctor.evidence.system import Growth
from headrace.doctor.made_up.system import growth
from headrace.doctor.rule import Example, Finding, Fix, Rule

MIB = 2**20
GIB = 2**30
FEWEST_BYTES = 8 * MIB
"""Growth below this may be the allocator's."""
STEADY = 0.5
"""Part of the quarter that grows most that every quarter must grow, but for the first: in it libraries fill their pools."""
SHARE = 0.9


class MemoryForecast(Rule):
    """HR705."""

    code = "HR705"
    name = "memory-forecast"
    summary = "Memory that grows with each sample read, and will not be enough for the data set."
    rationale = """
        A cache without a bound, a list that collects what was read, or a library that does not give back what it took: memory
        grows with every sample, in every worker, until the machine ends one of them ("DataLoader worker is killed by
        signal: Killed"), hours into a run and without a word on why.

        It is no fault to cache a data set that fits, in as many copies as there are workers: only growth that the machine
        cannot hold is named. Growth that ends (buffers, pools, a cache that is full) is silent.
        """
    experiment = (
        "Some hundred samples are read in one process and thrown away; its private memory is looked at on the way."
    )
    needs = (Growth,)
    fix = Fix(
        text="Bound what is kept, or keep it once for all workers: on disk, or in shared memory.",
        safety="same data",
        snippet="@functools.lru_cache(maxsize=1000)\ndef load(path): ...",
    )
    references = ("pytorch#8976", "SoftGroup#18", "mmrotate#501", "Megatron-LM#1657", "kraken#266")

    def judge(self, seen: Growth) -> list[Finding]:
        """At most one finding."""
        if len(seen.memory_bytes) < 5 or seen.num_reads == 0:
            return []
        memory = seen.memory_bytes
        quarters = [later - earlier for earlier, later in itertools.pairwise(memory)]
        grown, is_steady = sum(quarters[1:]), min(quarters) > 0 and min(quarters[1:]) >= STEADY * max(quarters[1:])
        if grown < FEWEST_BYTES or not is_steady:
            return []
        per_sample = grown / (seen.num_reads * len(quarters[1:]) / len(quarters))
        copies = max(seen.num_workers, 1)
        needed = per_sample * seen.num_samples * copies
        if needed < SHARE * seen.free_memory_bytes:
            return []
        times = f" x {copies} workers" if copies > 1 else ""
        return [
            Finding(
                message=f"memory grows by {per_sample / MIB:,.2f} MiB per sample: {seen.num_samples:,} samples{times} would take "
                f"{needed / GIB:,.1f} GiB, and {seen.free_memory_bytes / GIB:,.1f} GiB is free",
                severity="error",
                basis="experiment",
                confidence=0.85,
                stage="read",
                evidence={"memory_bytes": list(memory), "num_reads": seen.num_reads, "needed_bytes": int(needed)},
            )
        ]

    sick = (
        Example(
            title="A cache without a bound, in each of four workers",
            evidence=(
                growth(
                    num_reads=400,
                    num_samples=60_000,
                    num_workers=4,
                    memory_bytes=(200 * MIB, 300 * MIB, 400 * MIB, 500 * MIB, 600 * MIB),
                    free_memory_bytes=32 * GIB,
                ),
            ),
            message="memory grows by 1.00 MiB per sample: 60,000 samples x 4 workers would take 234.4 GiB, and 32.0 GiB is free",
        ),
        Example(
            title="Few reads in the time, the first of which also filled the pools of a library",
            evidence=(
                growth(
                    num_reads=100,
                    num_samples=2_000_000,
                    num_workers=0,
                    memory_bytes=(22 * MIB, 69 * MIB, 81 * MIB, 94 * MIB, 106 * MIB),
                    free_memory_bytes=16 * GIB,
                ),
            ),
            message="memory grows by 0.49 MiB per sample: 2,000,000 samples would take 963.5 GiB, and 16.0 GiB is free",
        ),
        Example(
            title="A list of everything that was read",
            evidence=(
                growth(
                    num_reads=100,
                    num_samples=10_000,
                    num_workers=0,
                    memory_bytes=(100 * MIB, 150 * MIB, 200 * MIB, 250 * MIB, 300 * MIB),
                    free_memory_bytes=16 * GIB,
                ),
            ),
            message="memory grows by 2.00 MiB per sample: 10,000 samples would take 19.5 GiB, and 16.0 GiB is free",
        ),
    )
    healthy = (
        Example(
            title="Pools that fill more slowly from quarter to quarter",
            evidence=(
                growth(
                    num_reads=400,
                    num_samples=1_000_000,
                    num_workers=4,
                    memory_bytes=(200 * MIB, 300 * MIB, 360 * MIB, 380 * MIB, 390 * MIB),
                    free_memory_bytes=32 * GIB,
                ),
            ),
        ),
        Example(
            title="A cache of a data set that fits",
            evidence=(
                growth(
                    num_reads=400,
                    num_samples=1_000,
                    num_workers=4,
                    memory_bytes=(200 * MIB, 300 * MIB, 400 * MIB, 500 * MIB, 600 * MIB),
                    free_memory_bytes=32 * GIB,
                ),
            ),
        ),
        Example(
            title="A cache that is full",
            evidence=(
                growth(
                    num_reads=400,
                    num_samples=1_000_000,
                    num_workers=4,
                    memory_bytes=(200 * MIB, 600 * MIB, 610 * MIB, 610 * MIB, 611 * MIB),
                    free_memory_bytes=32 * GIB,
                ),
            ),
        ),
    )
