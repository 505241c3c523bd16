"""HR001 fewer-usable-cores: as many workers as the machine has cores, of which this process may use only some."""

from __future__ import annotations

from headrace.doctor.evidence import LoaderFacts
from headrace.doctor.evidence.system import MachineFacts
from headrace.doctor.made_up import loader
from headrace.doctor.made_up.system import a_machine
from headrace.doctor.rule import Example, Finding, Fix, Rule


class FewerUsableCores(Rule):
    """HR001."""

    code = "HR001"
    name = "fewer-usable-cores"
    summary = (
        "As many workers as the machine has cores, while affinity or a container's quota leaves fewer to this process."
    )
    rationale = """
        `os.cpu_count()` counts the cores of the machine. In a container with a quota, under a scheduler that pins jobs, or with
        `taskset`, a process may use a few of them; sixteen workers on two cores push each other aside, take memory sixteen
        times, and throttle the training process with them.

        It is no fault to start more workers than usable cores on purpose, for samples that wait for storage; so only a
        number that is the machine's own count, or one or two below it, is named.
        """
    experiment = "Affinity, quota and core count are read after TARGET has been loaded. Nothing is run."
    needs = (MachineFacts, LoaderFacts)
    fix = Fix(
        text="Count the cores that the process may use.",
        safety="same data, in the same order",
        snippet="num_workers = len(os.sched_getaffinity(0))  # and not os.cpu_count()",
    )
    references = ("pytorch#46867", "Lightning#19223", "PyTorch, DataLoader: warning on too many workers")

    def judge(self, machine: MachineFacts, facts: LoaderFacts) -> list[Finding]:
        """At most one finding."""
        asks_for_all = machine.cores - 2 <= facts.num_workers <= machine.cores
        if facts.num_workers <= machine.usable_cores or not asks_for_all:
            return []
        return [
            Finding(
                message=f"{facts.num_workers} workers, as many as the machine has cores ({machine.cores}), but this process may use "
                f"{machine.usable_cores}",
                severity="warning",
                basis="observed",
                confidence=0.8,
                stage="start of workers",
                evidence={
                    "cores": machine.cores,
                    "usable_cores": machine.usable_cores,
                    "num_workers": facts.num_workers,
                },
            )
        ]

    sick = (
        Example(
            title="A container with a quota of two cores",
            evidence=(a_machine(cores=16, usable_cores=2), loader(num_workers=16)),
            message="16 workers, as many as the machine has cores (16), but this process may use 2",
        ),
        Example(
            title="All cores but one, for the training process",
            evidence=(a_machine(cores=8, usable_cores=1), loader(num_workers=7)),
            message="7 workers, as many as the machine has cores (8), but this process may use 1",
        ),
    )
    healthy = (
        Example(
            title="The whole machine is ours",
            evidence=(a_machine(cores=8, usable_cores=8), loader(num_workers=8)),
        ),
        Example(
            title="A number of one's own",
            evidence=(a_machine(cores=64, usable_cores=2), loader(num_workers=4)),
        ),
    )
