"""HR004 noisy-host: others use this machine's cores, so its timings say little."""

from __future__ import annotations

from headrace.doctor.evidence.system import LOUD, MachineFacts
from headrace.doctor.made_up.system import a_machine
from headrace.doctor.rule import Example, Finding, Fix, Rule


class NoisyHost(Rule):
    """HR004."""

    code = "HR004"
    name = "noisy-host"
    summary = "Processes of this machine wait for cores a good part of the time."
    rationale = """
        Where others use the cores, a loader is slow without any fault of its own, and two measurements of the same setting
        differ by more than any setting would bring. What is said about data and errors is not touched by it.

        It is no fault of the loader: a remark, so that nobody tunes against noise. It is made beside findings that rest on
        timings (HR8xx), and where it is asked for (`--select HR004`).
        """
    experiment = "The kernel's pressure information (/proc/pressure/cpu) is read."
    needs = (MachineFacts,)
    beside = "HR8"
    fix = Fix(text="Measure again when the machine is quiet.", safety="same data", snippet="$ cat /proc/pressure/cpu")
    references = ("Linux, PSI - Pressure Stall Information",)

    def judge(self, machine: MachineFacts) -> list[Finding]:
        """At most one finding."""
        if machine.cpu_pressure is None or machine.cpu_pressure < LOUD:
            return []
        return [
            Finding(
                message=f"in {machine.cpu_pressure:.0f} % of the last ten seconds something on this machine waited for a core: timings "
                "say little",
                severity="info",
                basis="observed",
                confidence=0.7,
                stage="machine",
                evidence={"cpu_pressure": machine.cpu_pressure},
            )
        ]

    sick = (
        Example(
            title="A shared machine",
            evidence=(a_machine(cpu_pressure=72.0),),
            message="in 72 % of the last ten seconds something on this machine waited for a core: timings say little",
        ),
        Example(
            title="Another job on the same cores",
            evidence=(a_machine(cpu_pressure=45.5),),
            message="in 46 % of the last ten seconds something on this machine waited for a core: timings say little",
        ),
    )
    healthy = (
        Example(title="A quiet machine", evidence=(a_machine(cpu_pressure=2.0),)),
        Example(title="A kernel that does not tell", evidence=(a_machine(cpu_pressure=None),)),
    )
