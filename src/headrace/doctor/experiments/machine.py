"""Asks what the machine offers to the process that loads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import MachineFacts
from headrace.doctor.lab.bench import Bench
from headrace.doctor.probes.machine import ask_machine
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject

__all__ = ["STEP", "AskMachine"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskMachine:
    """The experiment; yields one MachineFacts."""

    name: ClassVar[str] = "machine"
    starts_processes: ClassVar[bool] = False

    cpu_pressure: float | None
    """As it was before the doctor itself had anything to do."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[MachineFacts]:  # noqa: ARG002 - neither is asked
        """Asks in the child: what TARGET has set (affinity, limits, sharing strategy) is seen."""
        yield ask_machine(self.cpu_pressure)


class _Step:
    place = 205
    gives: tuple[type[Evidence], ...] = (MachineFacts,)
    every_split = False

    def run(self, round_: Round) -> None:
        round_.gather(AskMachine(cpu_pressure=round_.lab.cpu_pressure), MachineFacts)


STEP = _Step()
