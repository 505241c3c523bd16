"""What the doctor said of the loader stands in the history of the run, however it was handed over."""

import json

import msgspec
import pytest
import torch
from tests.loop.sensitive import own_loader
from torch import nn

import headrace as hr
from headrace.doctor.report.json import to_json
from headrace.doctor.report.model import (
    SCHEMA_VERSION,
    ChosenFix,
    Environment,
    FindingRow,
    IgnoredRow,
    Report,
    SkippedRow,
)
from headrace.errors import ConfigurationError
from headrace.loop.diagnosis import SCHEMA, verdict_of


def finding(code, name, severity):
    return FindingRow(
        code=code,
        name=name,
        stage="read",
        severity=severity,
        basis="observed",
        confidence=1.0,
        message="made up",
        sample_ids=[3],
        where=None,
        evidence={"num": 1},
        fix=ChosenFix(text="mend it", safety="same data"),
    )


def report(*findings, **more):
    return Report(
        **{
            "tool": "headrace 0.1.0",
            "created": "2026-07-01T12:00:00+02:00",
            "command": "headrace diagnose train.py:make_loader",
            "environment": Environment(
                python="3.11", torch=None, numpy="2", headrace="0.1.0", platform="x", usable_cores=2
            ),
            "target": {"spec": "train.py:make_loader"},
            "findings": list(findings),
            "runs": [],
            "stages": [],
            "skipped": [SkippedRow(code="HR401", name="pageable-copy", reason="no device")],
            "cleared": ["HR101", "HR102"],
            "verdict": "findings" if findings else "clean",
            **more,
        }
    )


SICK = report(
    finding("HR206", "constant-worker-seed", "error"),
    finding("HR207", "other", "error"),
    finding("HR206", "constant-worker-seed", "warning"),
    finding("HR610", "padded-evaluation", "info"),
)


def test_it_is_verdict_headline_counts_and_codes():
    assert verdict_of(SICK) == {
        "headline": "train.py:make_loader: 2 errors, 1 warning and 1 remark; begin with HR206 constant-worker-seed",
        "verdict": "findings",
        "counts": {"error": 2, "warning": 1, "info": 1},
        "rules": ["HR206", "HR207", "HR610"],
        "passed": 2,
        "skipped": 1,
        "accepted": 0,
        "tool": "headrace 0.1.0",
        "created": "2026-07-01T12:00:00+02:00",
        "report": None,
    }


def test_a_report_on_the_disk_is_the_same_and_is_named(tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(to_json(SICK))
    for given in (path, str(path)):
        assert verdict_of(given) == {**verdict_of(SICK), "report": str(path)}


@pytest.mark.parametrize(
    ("given", "headline"),
    [
        (report(), "train.py:make_loader: no fault found"),
        (report(target={}), "no fault found"),
        (
            report(verdict="inconclusive", is_conclusive=False),
            "train.py:make_loader: undecided: too little could be examined",
        ),
        (
            report(
                known=[finding("HR1", "a", "error")],
                ignored=[IgnoredRow(finding=finding("HR2", "b", "error"), reason="meant", at="a.py:1")],
            ),
            "train.py:make_loader: no fault found, 2 accepted",
        ),
        (report(finding("HR610", "a", "info")), "train.py:make_loader: 1 remark; begin with HR610 a"),
    ],
)
def test_headlines(given, headline):
    assert verdict_of(given)["headline"] == headline


def test_the_newest_schema_of_reports_is_known():
    """Where it was raised, what a field means has changed: look at what `verdict_of` makes of it."""
    assert SCHEMA == SCHEMA_VERSION


def test_what_is_no_report_is_refused_and_it_is_said_how_to_get_one(tmp_path):
    with pytest.raises(ConfigurationError, match=r"^diagnosis='.*none\.json' cannot be read: No such file") as caught:
        verdict_of(tmp_path / "none.json")
    assert f"headrace diagnose train.py:make_loader --json {tmp_path / 'none.json'}" in str(caught.value)
    page = tmp_path / "report.html"
    page.write_text("<html></html>")
    with pytest.raises(ConfigurationError, match=r"^diagnosis='.*report\.html' is no report of headrace diagnose"):
        verdict_of(page)
    with pytest.raises(ConfigurationError, match=r"^diagnosis=DataLoader is no report"):
        verdict_of(own_loader())
    with pytest.raises(ConfigurationError, match=r"^the diagnosis has schema 99, and this headrace reads up to"):
        verdict_of(msgspec.structs.replace(SICK, schema=99))


def trained(folder, **more):
    net = nn.Linear(6, 2)
    loop = hr.Loop(
        net,
        torch.optim.SGD(net.parameters(), 0.1),
        train=own_loader(),
        epochs=1,
        folder=folder,
        evaluate=None,
        sanity=False,
        **more,
    )
    for step in loop:
        step.update(nn.functional.cross_entropy(net(step.batch["x"]), step.batch["y"]))
    loop.close()
    rows = map(json.loads, (folder / "history.jsonl").read_text(encoding="utf-8").splitlines())
    return next(row["facts"] for row in rows if "facts" in row)


def test_a_run_keeps_it_in_its_history_and_without_one_says_nothing(tmp_path):
    assert trained(tmp_path / "told", diagnosis=SICK)["diagnosis"] == verdict_of(SICK)
    assert "diagnosis" not in trained(tmp_path / "untold")


@pytest.mark.slow
def test_what_diagnose_returned_is_taken_as_it_is(tmp_path):
    found = hr.diagnose(own_loader(), select=["HR305"])
    kept = trained(tmp_path, diagnosis=found)["diagnosis"]
    assert kept["verdict"] == found.verdict
    assert kept["tool"] == found.tool
    assert kept["counts"] == {
        word: [row.severity for row in found.findings].count(word) for word in ("error", "warning", "info")
    }
    assert len(json.dumps(kept)) < 1000
