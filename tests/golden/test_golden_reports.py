"""One set of made-up evidence, judged by the real rules, as text and as JSON; every number here is made up."""

from __future__ import annotations

import pytest

from headrace.doctor import catalogue
from headrace.doctor.evidence import ContractCheck, SampleReads, Violation
from headrace.doctor.made_up import collated, failed, file, image, label, loader, ok, opened, reads
from headrace.doctor.report.json import from_json, to_json
from headrace.doctor.report.model import (
    ChosenFix,
    Environment,
    FindingRow,
    Report,
    RunRow,
    SkippedRow,
    StageRow,
)
from headrace.doctor.report.text import render

LFS = opened("photos/7/0042.png", size_bytes=130, head=b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a")
CUT = opened("photos/flower/0013.jpg", size_bytes=8_192)
STACK = 'Traceback (most recent call last):\n  File "train.py", line 31, in crop\n    box = record["bbox"]\nKeyError: \'bbox\''


def broken_reads() -> SampleReads:
    colour = {"images": (file("RGB"),)}
    return reads(
        ok(image(3, 16, 16), label(3), **colour),
        ok(image(1, 16, 16), label(4), images=(file("L"),), sample_id="4/0008.png", path="photos/4/0008.png"),
        failed("UnidentifiedImageError", "cannot identify image file", files=(LFS,), sample_id="7/0042.png"),
        failed(
            "OSError",
            "image file is truncated (5 bytes not processed)",
            stage="decode",
            files=(CUT,),
            sample_id="flower/0013.jpg",
        ),
        ok(image(3, 16, 16), label(12), sample_id="9/0001.png", path="photos/9/0001.png", **colour),
        ok(image(3, 16, 16), label(0), **colour),
        failed("KeyError", "'bbox'", stage="transform", error_at="train.py:31 in crop", stack=STACK),
        num_samples=1_797,
        num_classes=10,
        num_classes_from="Digits.classes",
        target_fields=("label",),
    )


BROKEN = (
    broken_reads(),
    collated(ids=(0, "4/0008.png", "9/0001.png", 5), error_type="RuntimeError", odd_ids=("4/0008.png",)),
    loader(num_samples=1_797, batch_size=64, num_batches=29, num_workers=2),
    ContractCheck(
        contract="contract.toml",
        num_checked=7,
        violations=(Violation(sample_id="9/0001.png", field="label", expected="int64 in 0..9", found="12"),),
    ),
)
CLEAN = (
    reads(ok(image(3, 16, 16), label(3)), ok(image(3, 16, 16), label(0)), num_samples=1_797),
    collated(image(2, 3, 16, 16)),
    loader(num_samples=1_797, batch_size=64, num_batches=29),
)
ENVIRONMENT = Environment(
    python="3.11.9", torch="2.9.0", numpy="2.3.1", headrace="0.1.0", platform="Linux-x86_64", usable_cores=2
)


def judged(evidence, *, runs=None, verdict=None, target=None) -> Report:
    """What the rules say of the evidence, as a report."""
    held = {type(record): record for record in evidence}
    findings, skipped, cleared = [], [], []
    for rule in catalogue.rules():
        if missing := [need.__name__ for need in rule.needs if need not in held]:
            skipped.append(SkippedRow(code=rule.code, name=rule.name, reason=f"no evidence of kind {missing[0]}"))
            continue
        found = rule.judge(*(held[need] for need in rule.needs))
        findings += [row_of(rule, finding) for finding in found]
        cleared += [] if found else [rule.code]
    findings.sort(key=lambda row: (["error", "warning", "info"].index(row.severity), row.code))
    return Report(
        tool="headrace 0.1.0",
        created="2026-01-01T00:00:00+00:00",
        command="headrace diagnose train.py:make_loader",
        environment=ENVIRONMENT,
        target={
            "spec": "train.py:make_loader",
            "kind": "torch.utils.data.DataLoader",
            "num_samples": 1_797,
            "batch_size": 64,
            "num_workers": 2,
            "examined": 7,
        }
        | (target or {}),
        findings=findings,
        runs=runs or [RunRow(name="reads", outcome="done", wall_s=0.5)],
        stages=[StageRow(name="read", num_samples=64, wall_s=0.25)],
        skipped=skipped,
        cleared=cleared,
        verdict=verdict or ("findings" if findings else "clean"),
        is_conclusive=verdict != "inconclusive",
    )


def row_of(rule, finding) -> FindingRow:
    fix = finding.fix or rule.fix
    return FindingRow(
        code=rule.code,
        name=rule.name,
        stage=finding.stage,
        severity=finding.severity,
        basis=finding.basis,
        confidence=finding.confidence,
        message=finding.message,
        sample_ids=list(finding.sample_ids),
        where=finding.where,
        evidence=dict(finding.evidence),
        fix=ChosenFix(text=fix.text, safety=fix.safety, snippet=fix.snippet),
    )


REPORTS = {
    "broken": judged(BROKEN),
    "clean": judged(CLEAN, target={"examined": 64}),
    "inconclusive": judged(
        (loader(num_samples=1_797, batch_size=64, num_batches=29),),
        runs=[RunRow(name="reads", outcome="over-budget", wall_s=90.0, detail="the first sample took 88 s")],
        verdict="inconclusive",
        target={"examined": 0},
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_text_is_the_one_that_was_read_in_review(name, golden):
    golden(f"report-{name}.txt", render(REPORTS[name]).encode())


@pytest.mark.parametrize("name", REPORTS)
def test_the_json_is_the_one_that_was_read_in_review(name, golden):
    golden(f"report-{name}.json", to_json(REPORTS[name]))


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_comes_back_from_its_json_as_it_was(name):
    assert from_json(to_json(REPORTS[name])) == REPORTS[name]


def test_each_broken_sample_is_named():
    named = {sample_id for finding in REPORTS["broken"].findings for sample_id in finding.sample_ids}
    assert named == {"4/0008.png", "7/0042.png", "flower/0013.jpg", "9/0001.png", 6}


def test_a_grey_image_is_reported_once_at_its_root():
    codes = [finding.code for finding in REPORTS["broken"].findings if "4/0008.png" in finding.sample_ids]
    assert codes == ["HR106"]
