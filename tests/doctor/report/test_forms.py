"""Whatever a report holds, each form of it can be written, read back, and says every finding; nothing breaks out."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.doctor.report.formats import FORMATS, write_as
from headrace.doctor.report.json import from_json, to_json
from headrace.doctor.report.visible import visible, visible_text
from headrace.doctor.suppression import apply_comments

DATA = st.data()


@pytest.fixture(scope="module", autouse=True)
def no_plots():
    """Plots have tests of their own; here they would cost minutes."""
    from headrace.doctor.report import html

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "plot_stages", lambda report: None)
        patch.setattr(html, "plot_runs", lambda report: None)
        yield


@pytest.mark.parametrize("form", FORMATS)
@given(data=DATA)
def test_every_report_can_be_written_and_is_utf8_without_controls(made_up, form, data):
    text = write_as(form, data.draw(made_up.reports), [])
    text.encode()
    assert text.endswith("\n")
    if form != "json":  # JSON escapes them itself
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


@given(DATA)
def test_the_same_report_gives_the_same_bytes(made_up, data):
    report = data.draw(made_up.reports)
    for form in FORMATS:
        assert write_as(form, report) == write_as(form, report)


@given(DATA)
def test_json_comes_back_but_for_what_utf8_cannot_hold(made_up, data):
    report = data.draw(made_up.reports)
    back = from_json(to_json(report))
    assert to_json(back) == to_json(report)


@given(st.text(st.characters(exclude_categories=())))
def test_text_made_visible_stays_so_and_ordinary_text_stays_itself(text):
    shown = visible_text(text)
    assert visible_text(shown) == shown
    shown.encode()
    if text.isprintable():
        assert shown == text


def test_a_report_without_anything_hidden_is_itself(report, row):
    one = report(row(message="naïve 漢字 🙂 \t tab\nline"))
    assert visible(one) is one


@given(DATA)
def test_looking_for_comments_survives_any_place(made_up, data):
    report = data.draw(made_up.reports)
    assert not apply_comments(report).ignored[len(report.ignored) :]


# JUnit.


@given(DATA)
def test_junit_has_one_case_for_each_rule_and_counts_them(made_up, data):
    report = visible(data.draw(made_up.reports))
    suites = ET.fromstring(write_as("junit", report))
    cases = list(suites.iter("testcase"))
    rows = [*report.findings, *report.known, *report.skipped, *(one.finding for one in report.ignored)]
    assert sorted(case.get("name").split()[0] for case in cases) == sorted(
        {row.code for row in rows} | set(report.cleared)
    )
    failing = {row.code for row in report.findings if row.severity != "info"}
    assert {case.get("name").split()[0] for case in cases if case.find("failure") is not None} == failing
    for holder in (suites, suites.find("testsuite")):
        for name, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
            assert int(holder.get(name)) == sum(case.find(tag) is not None for case in cases)
        assert int(holder.get("tests")) == len(cases)


@given(DATA)
def test_junit_says_the_message_exactly(made_up, report, data):
    found = visible(report(data.draw(made_up.findings)))
    case = ET.fromstring(write_as("junit", found)).find(".//failure")
    if found.findings[0].severity == "info":
        assert case is None
    else:
        split = f"[{found.findings[0].split}] " if found.findings[0].split else ""
        # XML turns a bare line break of an attribute into a blank only where it is not written as a reference.
        assert case.get("message") == split + found.findings[0].message


# GitHub.


@given(DATA)
def test_each_annotation_is_one_line_that_reads_back(made_up, data):
    report = visible(data.draw(made_up.reports))
    *commands, verdict = write_as("github", report).rstrip("\n").split("\n")
    assert len(commands) == len(report.findings)
    assert verdict.startswith("VERDICT  ")
    for line, row in zip(commands, report.findings, strict=True):
        level, values, text = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()
        read = {name: unescape(value) for name, value in (one.split("=", 1) for one in values.split(","))}
        assert level == {"error": "error", "warning": "warning", "info": "notice"}[row.severity]
        assert read["title"] == f"{row.code} {row.name}"
        assert row.message in unescape(text)
        assert set(read) <= {"file", "line", "title"}


def unescape(text):
    for code, character in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_an_annotation_as_the_manual_writes_it(report, row):
    line = write_as("github", report(row(message="50% lost\nof it", where="src/a,b.py:3 in crop"))).splitlines()[0]
    assert line == (
        "::error file=src/a%2Cb.py,line=3,title=HR301 shape-mismatch::50%25 lost%0Aof it%0Asamples: c%0Ado: mend it"
    )


# HTML.


class Reader(HTMLParser):
    """Keeps tags, attributes and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


@given(DATA)
def test_a_page_runs_nothing_fetches_nothing_and_says_everything(made_up, data):
    report = visible(data.draw(made_up.reports))
    for text in (write_as("html", report), report._repr_html_()):
        read = Reader(text)
        assert not {"script", "iframe", "object", "embed", "link", "form", "base"} & set(read.tags)
        assert "alert(1)" not in " ".join(tag for tag in read.tags)
        for name, value in read.attributes:
            assert not name.startswith("on")
            if name in {"src", "xlink:href"}:
                assert value.startswith(("data:image/png;base64,", "#"))
            if name == "href":
                assert value.startswith(("https://headrace.readthedocs.io/", "#"))
        assert "@import" not in text
        assert not re.search(r"url\((?!#)", text)
        said = "".join(read.texts)
        for row in report.findings:
            assert row.message in said


# SARIF.


@given(DATA)
def test_sarif_is_as_the_specification_says(made_up, data):
    report = visible(data.draw(made_up.reports))
    document = json.loads(write_as("sarif", report))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["helpUri"].startswith("https://")
        if "help" in rule:
            assert rule["help"]["text"]
            assert rule["shortDescription"]["text"]
    assert len(run["results"]) == len(report.findings) + len(report.known) + len(report.ignored)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert isinstance(result["message"]["text"], str)
        assert re.fullmatch(r"[0-9a-f]{32}", result["partialFingerprints"]["headrace/v1"])
        assert 0 <= result["rank"] <= 100
        (location,) = result["locations"]
        assert location.keys() <= {"physicalLocation", "logicalLocations"}
        assert location
        if physical := location.get("physicalLocation"):
            uri = physical["artifactLocation"]["uri"]
            assert re.fullmatch(r"[A-Za-z0-9\-._~/%:]*", uri)
            assert uri.startswith("file:///") or (not uri.startswith("/") and ":" not in uri)
            assert physical.get("region", {"startLine": 1})["startLine"] >= 1
        for suppression in result.get("suppressions", []):
            assert suppression["kind"] in {"inSource", "external"}
    for told in run["invocations"][0]["toolExecutionNotifications"]:
        assert told["level"] in {"note", "error"}


@given(DATA)
def test_sarif_messages_and_paths_come_back(made_up, report, data):
    found = visible(report(data.draw(made_up.findings)))
    (result,) = json.loads(write_as("sarif", found))["runs"][0]["results"]
    assert found.findings[0].message in result["message"]["text"]


@pytest.mark.parametrize(
    ("where", "uri", "line"),
    [
        ("train.py:31 in crop", "train.py", 31),
        ("src/a b/ü.py:3", "src/a%20b/%C3%BC.py", 3),
        ("photos/7.png", "photos/7.png", None),
        ("/elsewhere/photos/7.png", "file:///elsewhere/photos/7.png", None),
        ("contract.toml", "contract.toml", None),
        ("dataset.transform.generator", "train.py", None),
        (None, "train.py", None),
    ],
)
def test_places(report, row, where, uri, line):
    (result,) = json.loads(write_as("sarif", report(row(where=where))))["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == uri
    assert physical.get("region", {}).get("startLine") == line
    assert ("logicalLocations" in result["locations"][0]) == (where in {None, "dataset.transform.generator"})


def test_paths_below_the_current_folder_are_relative(report, row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = write_as("sarif", report(row(where=str(tmp_path / "photos/7.png"))))
    assert unquote(
        json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    ) == ("photos/7.png")


def test_a_rule_is_described_for_the_code_host(report, row):
    rules = json.loads(write_as("sarif", report(row())))["runs"][0]["tool"]["driver"]["rules"]
    told = {rule["id"]: rule for rule in rules}["HR301"]
    assert told["helpUri"].endswith("HR301.html")
    assert "How to mend it" in told["help"]["markdown"]


def test_what_does_not_count_is_suppressed_with_its_reason(report, row):
    from headrace.doctor.report.model import IgnoredRow

    one = IgnoredRow(finding=row(), reason="meant", at="train.py:3")
    results = json.loads(write_as("sarif", report(ignored=[one], known=[row("HR101")])))["runs"][0]["results"]
    assert [(r["ruleId"], r["suppressions"][0]["kind"]) for r in results] == [
        ("HR101", "external"),
        ("HR301", "inSource"),
    ]
    assert "meant" in results[1]["suppressions"][0]["justification"]
