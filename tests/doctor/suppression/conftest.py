"""Made-up reports for these tests."""

import pytest

from headrace.doctor.report.model import ChosenFix, Environment, FindingRow, Report


def make_row(code="HR205", **changes):
    return FindingRow(
        **{
            "code": code,
            "name": "made-up",
            "stage": "transform",
            "severity": "error",
            "basis": "observed",
            "confidence": 1.0,
            "message": f"{code} speaks",
            "sample_ids": [],
            "where": None,
            "evidence": {},
            "fix": ChosenFix(text="mend it", safety="same data"),
        }
        | changes
    )


def make_report(*findings, **changes):
    return Report(
        **{
            "tool": "headrace 0",
            "created": "2026-01-01T00:00:00+00:00",
            "command": "headrace diagnose train.py:make_loader",
            "environment": Environment(
                python="3", torch=None, numpy="2", headrace="0", platform="Linux", usable_cores=2
            ),
            "target": {"spec": "train.py:make_loader", "dataset": "train.Photos", "num_samples": 9, "examined": 9},
            "findings": list(findings),
            "runs": [],
            "stages": [],
            "skipped": [],
            "cleared": ["HR309"],
            "verdict": "findings" if findings else "clean",
        }
        | changes
    )


@pytest.fixture(scope="session")
def row():
    return make_row


@pytest.fixture(scope="session")
def report():
    return make_report
