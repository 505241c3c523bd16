"""What is looked at before anything is measured, and printed with it: the machine, its noise, the state of the cache."""

from __future__ import annotations

import dataclasses
import multiprocessing
import pathlib
import platform
import sys
from collections.abc import Sequence
from typing import Any, Literal

import psutil

from headrace.doctor.evidence.system import LOUD, MachineFacts
from headrace.doctor.meters.control_group import control_group_of
from headrace.doctor.meters.page_cache import FileRange, Residency, resident
from headrace.doctor.probes.machine import ask_machine
from headrace.doctor.report.environment import describe_environment
from headrace.doctor.report.model import Environment
from headrace.machine import cpu_pressure

__all__ = ["Noise", "Preflight", "judge_noise", "look_before"]

NOISY = 10.0
"""Percent of ten seconds in which something waited for a core, before we start: more rounds are needed."""

Noise = Literal["quiet", "noisy", "loud", "unknown"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What a measured number depends on, besides what is measured."""

    machine: MachineFacts
    """Usable cores, free memory, /dev/shm, descriptors, pressure: as the calling process may use them."""
    noise: Noise
    """`quiet`; `noisy`: measure more rounds; `loud`: verdicts are limited to very large effects; `unknown`: the kernel
    does not tell."""
    memory_limit_bytes: int
    """What the control group may use, or the machine has."""
    start_method: str
    """How processes are started: chosen, or else the default of this Python."""
    torch_threads: int | None
    """Threads of one torch operation; None: torch is not imported here."""
    governor: str | None
    """How the frequency of the first core is chosen; None: not told, as in virtual machines."""
    is_virtual: bool | None
    """True in a virtual machine, whose host may hold in memory what is cold here; None: not known."""
    kernel: str
    """Release of the operating system's kernel."""
    environment: Environment
    """Versions of Python, torch, numpy and headrace, and the platform."""
    cache: Residency
    """How much of the planned files is in memory, and on which file systems they lie."""


def look_before(planned: Sequence[FileRange] = (), *, pressure: float | None = None) -> Preflight:
    """Returns what is found. Changes nothing, imports none of the heavy libraries; takes well below a second.

    Args:
        planned: Files and ranges that will be read. Default: not known; the state of the cache is then not, either.
        pressure: `headrace.machine.cpu_pressure()` of an earlier moment, if the caller had something to do before.
            Default: that of now.
    """
    machine = ask_machine(cpu_pressure() if pressure is None else pressure)
    torch: Any = sys.modules.get("torch")
    return Preflight(
        machine=machine,
        noise=judge_noise(machine.cpu_pressure),
        memory_limit_bytes=_memory_limit(),
        start_method=_start_method(),
        torch_threads=None if torch is None else int(torch.get_num_threads()),
        governor=_governor(),
        is_virtual=_is_virtual(),
        kernel=platform.release(),
        environment=describe_environment(),
        cache=resident(planned),
    )


def judge_noise(pressure: float | None) -> Noise:
    """Returns how noisy the machine is.

    Args:
        pressure: Percent of ten seconds in which something waited for a core; None: not told.
    """
    if pressure is None:
        return "unknown"
    if pressure >= LOUD:
        return "loud"
    return "noisy" if pressure >= NOISY else "quiet"


def _memory_limit() -> int:
    group = control_group_of()
    limit = None if group is None else group.limit_bytes()
    total = int(psutil.virtual_memory().total)
    return total if limit is None else min(limit, total)


def _start_method() -> str:
    """Asking for the method itself would fix it for the rest of the process."""
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def _governor() -> str | None:
    try:
        return pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text(encoding="utf-8").strip()
    except OSError:
        return None


def _is_virtual() -> bool | None:
    """By the flag that processors of this family show to guests; others have none."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    flags = next((line.split() for line in lines if line.startswith("flags")), None)
    return None if flags is None else "hypervisor" in flags
