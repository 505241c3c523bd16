r"""Makes every text of a report fit to be shown: data, and with them ids and messages, may hold anything.

Control characters could paint over a terminal, a lone surrogate (a file name that is not UTF-8) cannot be written at
all, and XML refuses a few more. They are shown as Python writes them: `\x1b`, `\udcff`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from headrace.doctor.report.model import Report

__all__ = ["visible", "visible_text"]

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Controls but line break and tab; line separators and overrides of direction; surrogates; what XML 1.0 forbids."""


def visible_text(text: str) -> str:
    r"""Returns the text with what cannot be shown, or would not show itself, written out.

    >>> visible_text("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def visible(report: Report) -> Report:
    """Returns the report with `visible_text` of every text in it; the same report if there is nothing to write out."""
    plain = msgspec.to_builtins(report)
    shown = _shown(plain)
    return report if shown == plain else msgspec.convert(shown, Report)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible_text(value)
    if isinstance(value, dict):
        return {_shown(key): _shown(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shown(part) for part in value]
    return value
