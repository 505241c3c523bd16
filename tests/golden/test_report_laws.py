"""What holds of every report: it fits the terminal, and it fits its schema."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.report.json import from_json, schema, to_json
from headrace.doctor.report.model import ChosenFix, Environment, FindingRow, Report, RunRow, SkippedRow
from headrace.doctor.report.text import render
from headrace.errors import ConfigurationError

WORDS = st.lists(st.text("abcdefgh.,", min_size=1, max_size=12), min_size=1, max_size=30).map(" ".join)
NUMBERS = st.integers(0, 10**9)
FINDINGS = st.builds(
    FindingRow,
    code=st.sampled_from(["HR101", "HR301"]),
    name=st.just("made-up"),
    stage=st.sampled_from(["", "read"]),
    severity=st.sampled_from(["error", "warning", "info"]),
    basis=st.just("observed"),
    confidence=st.floats(0.5, 1),
    message=WORDS,
    sample_ids=st.lists(st.integers(0, 99) | st.text("abc/.", min_size=1, max_size=12), max_size=12),
    where=st.none() | st.text("abc/.", min_size=1, max_size=40),
    evidence=st.dictionaries(
        st.sampled_from(["size_bytes", "waited_s", "shapes", "is_full"]),
        st.none()
        | st.booleans()
        | NUMBERS
        | st.floats(0, 1e6)
        | WORDS
        | st.lists(NUMBERS)
        | st.dictionaries(WORDS, NUMBERS, max_size=3),
    ),
    fix=st.builds(ChosenFix, text=WORDS, safety=WORDS, snippet=st.none() | st.just("for x in y:\n    print(x)")),
)
TARGETS = st.fixed_dictionaries(
    {"spec": st.just("train.py:make_loader")},
    optional={
        "kind": st.just("torch.utils.data.DataLoader"),
        "num_samples": st.none() | NUMBERS,
        "examined": st.none() | NUMBERS,
    },
)
SKIPPED = st.builds(
    SkippedRow, code=st.sampled_from(["HR302", "HR601"]), name=WORDS, reason=WORDS, crashed=st.booleans()
)


@st.composite
def reports(draw, findings=st.lists(FINDINGS, max_size=4)):
    found = draw(findings)
    return Report(
        tool="headrace 0",
        created="2026-01-01T00:00:00+00:00",
        command="headrace diagnose",
        environment=Environment(python="3", torch=None, numpy="2", headrace="0", platform="Linux", usable_cores=2),
        target=draw(TARGETS),
        findings=found,
        runs=draw(
            st.lists(
                st.builds(RunRow, name=WORDS, outcome=st.sampled_from(["done", "stuck"]), wall_s=st.floats(0, 99)),
                max_size=2,
            )
        ),
        stages=[],
        skipped=draw(st.lists(SKIPPED, max_size=6)),
        cleared=["HR309"],
        verdict="findings" if found else draw(st.sampled_from(["clean", "inconclusive"])),
    )


@given(reports(), st.integers(60, 120))
def test_lines_fit_the_width_unless_one_word_is_too_long(report, width):
    for line in render(report, width=width).splitlines():
        assert len(line) <= width or " " not in line.strip() or re.fullmatch(r"  \w+: +\S+", line)


@given(reports())
def test_colour_changes_nothing_but_colour(report):
    assert re.sub(r"\x1b\[[\d;]*m", "", render(report, color=True)) == render(report)
    assert "\x1b" not in render(report)


@given(reports())
def test_every_finding_is_shown_with_its_code_and_its_fix(report):
    text = " ".join(render(report).split())
    for finding in report.findings:
        assert f"{finding.code} {finding.name}" in text
        assert " ".join(finding.message.split()) in text
        assert " ".join(finding.fix.text.split()) in text


@given(reports(findings=st.just([])), st.integers(60, 120))
def test_a_healthy_loader_gets_at_most_six_lines(report, width):
    healthy = msgspec.structs.replace(
        report, verdict="clean", runs=[], skipped=[row for row in report.skipped if not row.crashed]
    )
    lines = render(healthy, width=width).splitlines()
    assert len(lines) <= 6
    assert lines[-1].endswith(".")


@given(reports())
def test_a_report_survives_json_and_fits_its_published_schema(report):
    data = to_json(report)
    assert from_json(data) == report
    assert_fits(json.loads(data), schema(), schema()["$defs"])


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"schema": "1"}', b'{"schema": 1, "tool": "x"}'])
def test_what_is_no_report_is_refused(data):
    with pytest.raises(ConfigurationError, match=r"^this is not a headrace report"):
        from_json(data)


def test_a_report_of_a_later_schema_is_refused_with_both_numbers():
    with pytest.raises(ConfigurationError, match=r"^this report has schema 2, and this headrace reads up to 1"):
        from_json(b'{"schema": 2}')


def assert_fits(value, rule, kinds):
    """The part of JSON Schema that the published schema uses."""
    if "$ref" in rule:
        assert_fits(value, kinds[rule["$ref"].rpartition("/")[2]], kinds)
    elif "anyOf" in rule:
        assert any(fits(value, part, kinds) for part in rule["anyOf"]), (value, rule)
    elif "enum" in rule:
        assert value in rule["enum"]
    elif "type" in rule:
        python = {
            "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)
        }  # fmt: skip
        assert isinstance(value, python[rule["type"]]), (value, rule)
        for key in rule.get("required", ()):
            assert key in value
        for key, part in rule.get("properties", {}).items():
            if key in value:
                assert_fits(value[key], part, kinds)
        for item in value if rule["type"] == "array" else ():
            assert_fits(item, rule.get("items", {}), kinds)


def fits(value, rule, kinds):
    try:
        assert_fits(value, rule, kinds)
    except AssertionError:
        return False
    return True
