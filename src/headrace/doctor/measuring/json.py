"""The measurement as JSON: the record itself; null: not measured or without bound, 0: measured zero."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from headrace.doctor.measuring.model import Measurement

__all__ = ["to_json"]


def to_json(m: Measurement) -> str:
    """Returns the record with `schema` first and exit status; numbers that JSON cannot write become null."""
    told = _finite(msgspec.to_builtins(m))
    told = {"schema": told.pop("schema"), "exit_status": m.conclusion.exit_status, **told}
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value
