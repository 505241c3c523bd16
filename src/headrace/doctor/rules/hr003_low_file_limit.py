"""HR003 low-file-limit: the batches in flight need more open files than are allowed."""

from __future__ import annotations

from headrace.doctor.evidence.system import MachineFacts, Pace
from headrace.doctor.made_up.system import a_machine, a_pace
from headrace.doctor.rule import Example, Finding, Fix, Rule

SHARE = 0.5
"""Part of the limit that batches in flight may take: the loop keeps some batches too, and opens files of its own."""


class LowFileLimit(Rule):
    """HR003."""

    code = "HR003"
    name = "low-file-limit"
    summary = "Batches of many tensors, each an open file while it travels, against a low limit of open files."
    rationale = """
        With the sharing strategy `file_descriptor`, torch's default on Linux, every tensor that comes from a worker is an open
        file as long as it lives. Many small tensors times workers times prefetching reach the usual limit of 1,024, and the
        loader ends with "received 0 items of ancdata" or "too many open files"; keeping batches in a list gets there too.

        It is no fault while half of the limit is free.
        """
    experiment = "Tensors of some batches are counted, and limits and sharing strategy are read."
    needs = (MachineFacts, Pace)
    fix = Fix(
        text="Send fewer and larger tensors, or share by file name; or raise the limit in the shell that starts the run.",
        safety="same data; file names are left in /dev/shm if the run is killed",
        snippet='torch.multiprocessing.set_sharing_strategy("file_system")',
    )
    references = ("pytorch#973", "pytorch#11201", "pytorch#41465", "MONAI#701")

    def judge(self, machine: MachineFacts, pace: Pace) -> list[Finding]:
        """At most one finding."""
        in_flight = pace.tensors_per_batch * pace.num_workers * pace.prefetch_factor
        room = machine.file_limit - machine.open_files
        if machine.sharing_strategy != "file_descriptor" or in_flight <= SHARE * room:
            return []
        return [
            Finding(
                message=f"{pace.tensors_per_batch:,} tensors per batch x {pace.num_workers} workers x {pace.prefetch_factor} batches "
                f"ahead = {in_flight:,} open files, of {machine.file_limit:,} that are allowed",
                severity="error" if in_flight > room else "warning",
                basis="experiment",
                confidence=0.9,
                stage="hand-over",
                evidence={"in_flight": in_flight, "file_limit": machine.file_limit, "open_files": machine.open_files},
            )
        ]

    sick = (
        Example(
            title="A dict of many small tensors",
            evidence=(
                a_machine(file_limit=1024, sharing_strategy="file_descriptor"),
                a_pace(num_workers=8, prefetch_factor=2, tensors_per_batch=70),
            ),
            message="70 tensors per batch x 8 workers x 2 batches ahead = 1,120 open files, of 1,024 that are allowed",
        ),
        Example(
            title="More than half of what is free",
            evidence=(
                a_machine(file_limit=1024, sharing_strategy="file_descriptor"),
                a_pace(num_workers=4, prefetch_factor=16, tensors_per_batch=9),
            ),
            message="9 tensors per batch x 4 workers x 16 batches ahead = 576 open files, of 1,024 that are allowed",
        ),
    )
    healthy = (
        Example(
            title="Images and labels",
            evidence=(
                a_machine(file_limit=1024, sharing_strategy="file_descriptor"),
                a_pace(num_workers=8, prefetch_factor=2, tensors_per_batch=2),
            ),
        ),
        Example(
            title="Shared by file name",
            evidence=(
                a_machine(file_limit=1024, sharing_strategy="file_system"),
                a_pace(num_workers=8, prefetch_factor=2, tensors_per_batch=70),
            ),
        ),
    )
