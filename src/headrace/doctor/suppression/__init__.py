"""Findings that do not count: those that a comment in the source takes for meant, and those that a baseline knows."""

from headrace.doctor.suppression.baseline import apply_baseline, load_baseline, write_baseline
from headrace.doctor.suppression.inline import apply_comments

__all__ = ["apply_baseline", "apply_comments", "load_baseline", "write_baseline"]
