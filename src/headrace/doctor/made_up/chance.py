"""Made-up failures that strike some readings and spare others."""

from __future__ import annotations

from typing import Any

from headrace.doctor.evidence.chance import ChanceFailure, ChanceFailures

__all__ = ["by_chance", "chance_failure"]


def chance_failure(error_type: str, message: str, *sample_ids: int, **more: Any) -> ChanceFailure:
    """Samples that failed twice in thirteen readings in one process, if nothing else is said."""
    said: dict[str, Any] = {"stage": "read", "at": "data.py:14 in fetch", "num_read": 13, "num_failed": 2}
    return ChanceFailure(error_type=error_type, message=message, sample_ids=sample_ids, **{**said, **more})


def by_chance(*failures: ChanceFailure, num_own_workers: int = 2) -> ChanceFailures:
    """What failed by chance in a loader with two workers."""
    return ChanceFailures(failures=failures, num_own_workers=num_own_workers)
