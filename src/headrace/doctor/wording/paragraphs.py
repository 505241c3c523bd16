"""Paragraphs of a report for a terminal."""

from __future__ import annotations

import textwrap

__all__ = ["LABEL", "labelled"]

LABEL = 9
"""Columns that labels take: `VERDICT` and two blanks."""


def labelled(label: str, text: str, width: int) -> list[str]:
    """Returns the lines of a paragraph with a label in front of the first one; none if there is no text."""
    return textwrap.wrap(
        text,
        width=width,
        initial_indent=label.ljust(LABEL),
        subsequent_indent=" " * LABEL,
        break_on_hyphens=False,
        break_long_words=False,
    )
