"""HR811 oversubscribed-cores: workers and their threads want several times the cores there are."""

from __future__ import annotations

from headrace.doctor.evidence.system import MachineFacts, Pace
from headrace.doctor.made_up.system import a_machine, a_pace
from headrace.doctor.rule import Example, Finding, Fix, Rule

MANY = 4
"""Workers per usable core from which they are too many for work that computes."""
FEWEST_WORKERS = 8
BUSY = 0.7
"""Cores that a single process asks for, from which its work is computing and not waiting."""
THREADED = 1.6
"""The same of one worker, from which it has several threads at work."""


class OversubscribedCores(Rule):
    """HR811."""

    code = "HR811"
    name = "oversubscribed-cores"
    summary = "Workers that compute, in numbers (or with threads) far beyond the cores that this process may use."
    rationale = """
        A worker that computes uses a core. Four times as many workers as cores bring nothing but switching, memory and a
        trainer that has to wait for its own core; workers whose libraries start threads of their own (OpenCV, BLAS, a
        `torch.set_num_threads` in worker_init_fn) do the same with few of them, and spinning threads do it worst.

        It is no fault to have many workers that wait, for slow storage: whether they compute is measured.
        """
    experiment = "The loader is walked through without and with its workers; what all threads ran, and waited for a core, is compared with the clock."
    needs = (MachineFacts, Pace)
    fix = Fix(
        text="As many workers as usable cores, less one for the trainer, and one thread in each.",
        safety="same data, in the same order",
        snippet="def one_thread(worker_id):\n"
        "    cv2.setNumThreads(0)\n"
        "    torch.set_num_threads(1)\n\n"
        "loader = DataLoader(dataset, num_workers=2, worker_init_fn=one_thread)",
    )
    references = ("pytorch#82219", "transferable-samplers#12", "pytorch#119546", "pytorch#46867")

    def judge(self, machine: MachineFacts, pace: Pace) -> list[Finding]:
        """At most one finding."""
        cores, workers = machine.usable_cores, pace.num_workers
        threads = pace.worker_cpu_share or 0.0
        if workers >= 2 and threads >= THREADED and threads * workers > cores:
            return [
                _finding(
                    f"each of {workers} workers asks for {threads:.1f} cores by threads of its own, and {cores} are usable",
                    machine,
                    pace,
                )
            ]
        computes = (pace.single_cpu_share or 0.0) >= BUSY
        if workers >= max(FEWEST_WORKERS, MANY * cores) and computes:
            return [
                _finding(
                    f"{workers} workers that compute on {cores} usable core{'' if cores == 1 else 's'}", machine, pace
                )
            ]
        return []

    sick = (
        Example(
            title="Sixteen workers on two cores",
            evidence=(
                a_machine(cores=2, usable_cores=2),
                a_pace(num_workers=16, single_cpu_share=0.98, worker_cpu_share=0.12),
            ),
            message="16 workers that compute on 2 usable cores",
        ),
        Example(
            title="Two workers with eight threads each",
            evidence=(
                a_machine(cores=4, usable_cores=4),
                a_pace(num_workers=3, single_cpu_share=3.8, worker_cpu_share=2.4),
            ),
            message="each of 3 workers asks for 2.4 cores by threads of its own, and 4 are usable",
        ),
    )
    healthy = (
        Example(
            title="Many workers that wait for storage",
            evidence=(
                a_machine(cores=2, usable_cores=2),
                a_pace(num_workers=16, single_cpu_share=0.05, worker_cpu_share=0.04),
            ),
        ),
        Example(
            title="A few more than cores",
            evidence=(
                a_machine(cores=2, usable_cores=2),
                a_pace(num_workers=4, single_cpu_share=0.99, worker_cpu_share=0.5),
            ),
        ),
    )


def _finding(message: str, machine: MachineFacts, pace: Pace) -> Finding:
    return Finding(
        message=message,
        severity="warning",
        basis="experiment",
        confidence=0.8,
        stage="workers",
        evidence={
            "usable_cores": machine.usable_cores,
            "single_cpu_share": pace.single_cpu_share,
            "worker_cpu_share": pace.worker_cpu_share,
        },
    )
