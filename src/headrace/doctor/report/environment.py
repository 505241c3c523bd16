"""Where a report is made."""

from __future__ import annotations

import importlib.metadata
import platform

from headrace import __version__
from headrace.doctor.report.model import Environment
from headrace.machine import usable_cores

__all__ = ["describe_environment", "usable_cores"]


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


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
