"""The exams that headrace sets itself, for everyone who writes a part of their own.

    from headrace.testing import RunnerSuite, SourceSuite, nothing_left

Suites are base classes for pytest: subclass one, say how to make the thing under test, and inherit the tests. Names
load on first use, so that a worker that only needs `headrace.testing.tasks` does not import pytest.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.testing.leftovers import nothing_left
    from headrace.testing.runners import RunnerSuite
    from headrace.testing.sources import SourceSuite

_HOME = {
    "RunnerSuite": "headrace.testing.runners",
    "SourceSuite": "headrace.testing.sources",
    "nothing_left": "headrace.testing.leftovers",
}

__all__ = ["RunnerSuite", "SourceSuite", "nothing_left"]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'headrace.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
