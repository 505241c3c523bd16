"""The measurement as JSON: the record itself; null: not measured or without bound, 0: measured zero."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from headrace.doctor.measuring.against import Against
from headrace.doctor.measuring.against_text import summary
from headrace.doctor.measuring.model import Measurement

__all__ = ["to_json"]


def to_json(m: Measurement, against: Against | None = None) -> str:
    """Returns the record with `schema` first and exit status; numbers that JSON cannot write become null.

    Args:
        m: The measurement.
        against: An earlier one that it was held against: `against` holds it, and the exit status is its.
    """
    told = _finite(msgspec.to_builtins(m))
    status = m.conclusion.exit_status if against is None else against.exit_status
    told = {"schema": told.pop("schema"), "exit_status": status, **told}
    if against is not None:
        told["against"] = {
            "outcome": against.outcome,
            "summary": summary(against),
            **_finite(msgspec.to_builtins(against)),
        }
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value
