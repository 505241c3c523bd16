"""Where a report is made, and how many cores this process may really use."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import platform

from headrace import __version__
from headrace.doctor.report.model import Environment

__all__ = ["describe_environment", "usable_cores"]

_CGROUP_ROOT = pathlib.Path("/sys/fs/cgroup")


def describe_environment() -> Environment:
    """Returns the versions and cores that a verdict depends on; imports none of the libraries."""
    return Environment(
        python=platform.python_version(),
        torch=_version("torch"),
        numpy=_version("numpy") or "",
        headrace=__version__,
        platform=platform.platform(),
        usable_cores=usable_cores(),
    )


def usable_cores(cgroup_root: pathlib.Path = _CGROUP_ROOT) -> int:
    """Returns the cores that affinity and the container's quota leave to this process; at least 1.

    A quota of 2.5 cores counts as 2: the third would be throttled half of the time.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup_root)
    return max(1, allowed if quota is None else min(allowed, int(quota)))


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


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
