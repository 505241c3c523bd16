"""Change one thing, run again, compare. Each module holds what runs in the child and its STEP; there is no list to keep."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.doctor.round import Step

__all__ = ["steps"]


@functools.cache
def steps() -> tuple[Step, ...]:
    """Returns the STEP of every module of this package, in the order of their places."""
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return tuple(sorted((module.STEP for module in modules), key=lambda step: (step.place, type(step).__name__)))
