"""HR002 small-shared-memory: /dev/shm is as small as containers get it if nobody asks for more."""

from __future__ import annotations

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.system import MachineFacts
from headrace.doctor.made_up import loader
from headrace.doctor.made_up.system import a_machine
from headrace.doctor.rule import Example, Finding, Fix, Rule

GIB = 2**30
MIB = 2**20
SMALL = 64 * MIB
"""What a container gets by default (Docker: `--shm-size`, default 64 MB)."""


class SmallSharedMemory(Rule):
    """HR002."""

    code = "HR002"
    name = "small-shared-memory"
    summary = "A /dev/shm of 64 MiB or less, through which torch's workers send their batches."
    rationale = """
        Torch's workers hand batches over in shared memory. A container gets 64 MiB of it unless it asks for more, and a batch of
        images takes tens of them: "bus error", or a worker that is killed, at a batch that is a little larger than others.

        It is no fault by itself: small batches fit. So it is a remark; HR704 forecasts whether this loader's batches fit.
        """
    experiment = "The size of /dev/shm is read."
    needs = (MachineFacts, LoaderFacts)
    fix = Fix(
        text="Give the container more.",
        safety="same data",
        snippet="$ docker run --shm-size=2g ...    # or: --ipc=host",
    )
    references = ("pytorch#5040", "pytorch#1355", "mmdetection#1997")

    def judge(self, machine: MachineFacts, facts: LoaderFacts) -> list[Finding]:
        """At most one finding."""
        size = machine.shm_size_bytes
        if facts.num_workers == 0 or (size is not None and size > SMALL):
            return []
        told = "there is no /dev/shm" if size is None else f"shared memory (/dev/shm) holds {size / MIB:.0f} MiB in all"
        return [
            Finding(
                message=f"{told}, and {facts.num_workers} workers send their batches through it",
                severity="info",
                basis="observed",
                confidence=0.6,
                stage="hand-over",
                where="shared memory",
                evidence={"shm_size_bytes": size},
            )
        ]

    sick = (
        Example(
            title="A container's default",
            evidence=(
                a_machine(shm_size_bytes=64 * MIB, shm_free_bytes=60 * MIB),
                loader(num_workers=4),
            ),
            message="shared memory (/dev/shm) holds 64 MiB in all, and 4 workers send their batches through it",
        ),
        Example(
            title="None at all",
            evidence=(a_machine(shm_size_bytes=None, shm_free_bytes=None), loader(num_workers=2)),
            message="there is no /dev/shm, and 2 workers send their batches through it",
        ),
    )
    healthy = (
        Example(
            title="Half of the machine's memory, as usual",
            evidence=(a_machine(shm_size_bytes=4 * GIB, shm_free_bytes=4 * GIB), loader(num_workers=4)),
        ),
        Example(
            title="Without workers nothing goes through it",
            evidence=(a_machine(shm_size_bytes=64 * MIB, shm_free_bytes=0), loader(num_workers=0)),
        ),
    )
