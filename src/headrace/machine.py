"""What this process may really use of the machine: cores and memory, by affinity and control group."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time

import psutil

__all__ = ["cpu_pressure", "process_awake_s", "thread_awake_s", "usable_cores", "usable_memory", "waited_for_core_s"]

_CGROUP_ROOT = pathlib.Path("/sys/fs/cgroup")


def usable_cores(cgroup_root: pathlib.Path = _CGROUP_ROOT) -> int:
    """Returns the cores that affinity and the container's quota leave to this process; at least 1.

    A quota of 2.5 cores counts as 2: the third would be throttled half of the time.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup_root)
    return max(1, allowed if quota is None else min(allowed, int(quota)))


def usable_memory(cgroup_root: pathlib.Path = _CGROUP_ROOT) -> int:
    """Returns the bytes that are free for this process now, by the machine and by the container's limit."""
    available = int(psutil.virtual_memory().available)
    for limit_name, used_name in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            limit, used = ((cgroup_root / name).read_text().strip() for name in (limit_name, used_name))
        except OSError:
            continue
        if limit.isdigit() and used.isdigit():  # else `max`
            available = min(available, int(limit) - int(used))
    return max(available, 0)


def cpu_pressure() -> float | None:
    """Returns the percent of the last ten seconds in which something on this machine waited for a core; None: not told.

    `some avg10` of the kernel's pressure information (Linux, Documentation/accounting/psi.rst).
    """
    try:
        first = _PRESSURE.read_text().splitlines()[0]
        return float(first.split("avg10=")[1].split()[0])
    except (OSError, IndexError, ValueError):
        return None


def thread_awake_s() -> float:
    """Returns the seconds for which the calling thread computed, or wanted to and had to wait for a core.

    On a machine whose cores others keep busy, computing looks like sleeping if only processor time is counted. Linux
    says how long a thread waited for a core; elsewhere it is processor time after all. Cost: 10 microseconds.
    """
    with contextlib.suppress(OSError, ValueError):
        return _awake_s(_SCHEDSTAT)
    return time.thread_time()


def waited_for_core_s() -> float | None:
    """Returns the seconds for which the calling thread wanted to compute and had to wait for a core; None: not told.

    Cost: 10 microseconds. Linux only.
    """
    with contextlib.suppress(OSError, ValueError):
        _, waited_ns, _ = _SCHEDSTAT.read_text().split()
        return int(waited_ns) / 1e9
    return None


def process_awake_s(pid: int) -> float:
    """Returns the same for all threads of a process that live now (Linux; 0.0 elsewhere, or if it has ended)."""
    total_s = 0.0
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError):  # a thread that has just ended
            total_s += _awake_s(task / "schedstat")
    return total_s


def _awake_s(schedstat: pathlib.Path) -> float:
    """First number and second: what a thread ran, and what it waited for a core (scheduler/sched-stats.rst)."""
    computed_ns, waited_ns, _ = schedstat.read_text().split()
    return (int(computed_ns) + int(waited_ns)) / 1e9


_PRESSURE = pathlib.Path("/proc/pressure/cpu")
_SCHEDSTAT = pathlib.Path("/proc/thread-self/schedstat")


def _quota(root: pathlib.Path) -> float | None:
    """Cores per period that the control group grants (version 2, else 1); None: no limit, or not Linux."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not quota.isdigit() or not period.isdigit():  # `max`, or -1
        return None
    return int(quota) / int(period)
