"""The evidence of a finding in words: names without dashes, numbers with their units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.doctor.report.model import FindingRow
from headrace.doctor.wording.samples import listing

__all__ = ["facts_of"]


def facts_of(row: FindingRow) -> list[tuple[str, str]]:
    """Returns (name, value) for each number or text behind a finding; nothing for what is empty, or a stack."""
    return [
        _fact(name, value)
        for name, value in row.evidence.items()
        if name != "stack" and value is not None and value not in ([], {})
    ]


def _fact(name: str, value: Any) -> tuple[str, str]:
    """`size_bytes`, 130 -> `size`, `130 bytes`: the unit that ends a name goes behind the number."""
    for suffix, unit in (("_bytes", " bytes"), ("_s", " s")):
        if name.endswith(suffix) and isinstance(value, (int, float)):
            return name.removesuffix(suffix).replace("_", " "), _value(value) + unit
    return name.replace("_", " "), _value(value)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_value(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return listing([_value(part) for part in value])
    return str(value)
