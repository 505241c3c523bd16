"""Where the documentation of a rule stands on the web."""

from __future__ import annotations

__all__ = ["DOCS", "rule_page"]

DOCS = "https://headrace.readthedocs.io"


def rule_page(code: str) -> str:
    """Returns the address of the page of one rule."""
    return f"{DOCS}/en/latest/rules/{code}.html"
