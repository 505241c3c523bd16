"""Libraries that one tracker needs and headrace does not."""

from __future__ import annotations

import importlib.util

from headrace.errors import MissingExtra

__all__ = ["require"]


def require(module: str, what: str) -> None:
    """Passes if a library is installed; does not import it, which takes seconds for some.

    Asked for when a tracker is made: later, its failure would be a warning, and the history lost.

    Raises:
        MissingExtra: it is not; says what to install.
    """
    if importlib.util.find_spec(module) is None:
        raise MissingExtra(f"{what} needs {module}", do="pip install 'headrace[track]'")
