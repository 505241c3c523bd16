"""Made-up reports of every kind, with any text in them."""

import pytest
from hypothesis import strategies as st

from headrace.doctor.report.model import (
    ChosenFix,
    Environment,
    FindingRow,
    IgnoredRow,
    KnownRow,
    Report,
    RunRow,
    SkippedRow,
    StageRow,
)

HOSTILE = [
    "</style></svg><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "$x^2$",
    "\x1b[31mred",
    "a\r\n::error::forged",
    "%0A::error file=x::y",
    "]]>",
    "\ud800",
    "\u202egnp.exe",
    "\x00",
    "\uffff",
]
ANY = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(HOSTILE)
"""Any unicode, also what UTF-8 has no bytes for."""
IDS = st.integers(0, 10**6) | ANY
FINDINGS = st.builds(
    FindingRow,
    code=st.sampled_from(["HR101", "HR301", "HR999"]),
    name=st.just("made-up"),
    stage=ANY,
    severity=st.sampled_from(["error", "warning", "info"]),
    basis=st.just("observed"),
    confidence=st.floats(0.5, 1),
    message=ANY,
    sample_ids=st.lists(IDS, max_size=4),
    where=st.none() | ANY | st.just("train.py:31 in crop") | ANY.map(lambda text: f"{text}.py:7"),
    evidence=st.dictionaries(ANY, st.none() | ANY | st.floats() | st.lists(IDS, max_size=2), max_size=3),
    fix=st.builds(ChosenFix, text=ANY, safety=ANY, snippet=st.none() | ANY),
    split=st.none() | ANY,
)
SKIPPED = st.builds(SkippedRow, code=st.sampled_from(["HR302", "HR601"]), name=ANY, reason=ANY, crashed=st.booleans())
REPORTS = st.builds(
    Report,
    tool=ANY,
    created=st.just("2026-01-01T00:00:00+00:00"),
    command=ANY,
    environment=st.builds(
        Environment, python=ANY, torch=st.none() | ANY, numpy=ANY, headrace=ANY, platform=ANY, usable_cores=st.just(2)
    ),
    target=st.fixed_dictionaries({}, optional={"spec": ANY | st.just("train.py:loader"), "num_samples": st.just(9)}),
    findings=st.lists(FINDINGS, max_size=4),
    runs=st.lists(
        st.builds(RunRow, name=ANY, outcome=st.sampled_from(["done", "stuck"]), wall_s=st.floats(0, 99), detail=ANY),
        max_size=2,
    ),
    stages=st.lists(
        st.builds(StageRow, name=ANY, num_samples=st.integers(0, 9), wall_s=st.none() | st.floats(0, 9)), max_size=2
    ),
    skipped=st.lists(SKIPPED, max_size=3, unique_by=lambda row: row.code),
    cleared=st.just(["HR309"]),
    verdict=st.sampled_from(["clean", "findings", "inconclusive"]),
    ignored=st.lists(st.builds(IgnoredRow, finding=FINDINGS, reason=ANY, at=ANY), max_size=2),
    known=st.lists(FINDINGS, max_size=2),
    vanished=st.lists(
        st.builds(
            KnownRow, code=st.just("HR305"), place=st.none(), field=st.none(), sample_ids=st.just([]), message=ANY
        ),
        max_size=1,
    ),
    notes=st.lists(ANY, max_size=2),
)


class MadeUp:
    """The strategies; a class, whose name says less than their text would in a failure."""

    reports = REPORTS
    findings = FINDINGS
    hostile = HOSTILE


def make_row(code="HR301", **changes):
    return FindingRow(
        **{
            "code": code,
            "name": "shape-mismatch",
            "stage": "collate",
            "severity": "error",
            "basis": "observed",
            "confidence": 1.0,
            "message": "1 of 4 samples does not stack",
            "sample_ids": ["c"],
            "where": "train.py:31 in crop",
            "evidence": {"num_samples": 1},
            "fix": ChosenFix(text="mend it", safety="same data", snippet="x = 1"),
        }
        | changes
    )


def make_report(*findings, **changes):
    return Report(
        **{
            "tool": "headrace 0.1.0",
            "created": "2026-01-01T00:00:00+00:00",
            "command": "headrace diagnose train.py:make_loader",
            "environment": Environment(
                python="3.11.9", torch="2.9.0", numpy="2.3.1", headrace="0.1.0", platform="Linux", usable_cores=2
            ),
            "target": {"spec": "train.py:make_loader", "kind": "torch.utils.data.DataLoader", "num_samples": 4},
            "findings": list(findings),
            "runs": [RunRow(name="reads", outcome="done", wall_s=0.5)],
            "stages": [StageRow(name="read", num_samples=4, wall_s=0.25)],
            "skipped": [SkippedRow(code="HR307", name="contract-violation", reason="there is no contract")],
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


@pytest.fixture(scope="session")
def made_up():
    return MadeUp
