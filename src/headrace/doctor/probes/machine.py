"""What the machine offers to the process that asks."""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import sys
from typing import Any

from headrace.doctor.evidence.system import MachineFacts
from headrace.machine import usable_cores, usable_memory

__all__ = ["ask_machine"]

_SHM = pathlib.Path("/dev/shm")  # noqa: S108 - where the kernel puts it


def ask_machine(cpu_pressure: float | None) -> MachineFacts:
    """Returns the limits of the calling process: affinity, control group, shared memory, descriptors.

    Args:
        cpu_pressure: As it was before the doctor itself had anything to do; see `headrace.machine.cpu_pressure`.
    """
    shm = shutil.disk_usage(_SHM) if _SHM.is_dir() else None
    sharing: Any = getattr(sys.modules.get("torch.multiprocessing"), "get_sharing_strategy", None)
    return MachineFacts(
        cores=os.cpu_count() or 1,
        usable_cores=usable_cores(),
        free_memory_bytes=usable_memory(),
        shm_size_bytes=None if shm is None else shm.total,
        shm_free_bytes=None if shm is None else shm.free,
        file_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        open_files=len(list(pathlib.Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0,
        sharing_strategy=None if sharing is None else str(sharing()),
        cpu_pressure=cpu_pressure,
    )
