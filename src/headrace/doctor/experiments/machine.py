"""Asks what the machine offers to the process that loads."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import shutil
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

from headrace.doctor.evidence import Evidence
from headrace.doctor.evidence.system import MachineFacts
from headrace.doctor.lab.bench import Bench
from headrace.doctor.round import Round
from headrace.doctor.subject import Subject
from headrace.machine import usable_cores, usable_memory

__all__ = ["STEP", "AskMachine"]

_SHM = pathlib.Path("/dev/shm")  # noqa: S108 - where the kernel puts it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AskMachine:
    """The experiment; yields one MachineFacts."""

    name: ClassVar[str] = "machine"
    starts_processes: ClassVar[bool] = False

    cpu_pressure: float | None
    """As it was before the doctor itself had anything to do."""

    def run(self, subject: Subject, bench: Bench) -> Iterator[MachineFacts]:  # noqa: ARG002 - neither is asked
        """Asks in the child: what TARGET has set (affinity, limits, sharing strategy) is seen."""
        shm = shutil.disk_usage(_SHM) if _SHM.is_dir() else None
        sharing: Any = getattr(sys.modules.get("torch.multiprocessing"), "get_sharing_strategy", None)
        yield MachineFacts(
            cores=os.cpu_count() or 1,
            usable_cores=usable_cores(),
            free_memory_bytes=usable_memory(),
            shm_size_bytes=None if shm is None else shm.total,
            shm_free_bytes=None if shm is None else shm.free,
            file_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            open_files=len(list(pathlib.Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0,
            sharing_strategy=None if sharing is None else str(sharing()),
            cpu_pressure=self.cpu_pressure,
        )


class _Step:
    place = 205
    gives: tuple[type[Evidence], ...] = (MachineFacts,)
    every_split = False

    def run(self, round_: Round) -> None:
        round_.gather(AskMachine(cpu_pressure=round_.lab.cpu_pressure), MachineFacts)


STEP = _Step()
