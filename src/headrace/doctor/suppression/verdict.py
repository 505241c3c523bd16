"""A report whose findings were sorted out anew, with the verdict that follows."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.doctor.report.model import FindingRow, Report

__all__ = ["with_findings"]


def with_findings(report: Report, findings: list[FindingRow], **changes: Any) -> Report:
    """Returns the report with these findings left to count, and other fields changed."""
    verdict = "findings" if findings else "clean" if report.is_conclusive else "inconclusive"
    return msgspec.structs.replace(report, findings=findings, verdict=verdict, **changes)
