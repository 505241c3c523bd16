"""The report as JUnit XML, which every build server can show: one test case for each rule.

Findings of severity info, ignored ones and known ones pass, and are told as output; a rule that failed itself is an
error, one that could not judge is skipped with the reason.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from headrace.doctor.report.model import FindingRow, Report, SkippedRow
from headrace.doctor.report.text import finding_text
from headrace.doctor.report.visible import visible

__all__ = ["to_junit"]


def to_junit(report: Report) -> bytes:
    """Returns the report as UTF-8 XML that ends with a line break. Same report, same bytes."""
    report = visible(report)
    cases = [_case(code, report) for code in _names(report)]
    spec = str(report.target.get("spec") or "loader")
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    numbers = {name: str(value) for name, value in counts.items()}
    seconds = f"{sum(run.wall_s for run in report.runs):.3f}"
    suites = ET.Element("testsuites", {"name": "headrace", "time": seconds, **numbers})
    told = {"name": f"headrace {spec}", "time": seconds, "timestamp": report.created, **numbers}
    ET.SubElement(suites, "testsuite", told).extend(cases)
    ET.indent(suites)
    written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _names(report: Report) -> dict[str, str]:
    """Code -> name of every rule that took part, sorted."""
    from headrace.doctor import catalogue

    known = {rule.code: rule.name for rule in catalogue.rules()}
    rows: list[FindingRow | SkippedRow] = [*report.findings, *report.known, *report.skipped]
    rows += [one.finding for one in report.ignored]
    told = {row.code: row.name for row in rows}
    return dict(sorted({code: told.get(code) or known.get(code, "") for code in (*told, *report.cleared)}.items()))


def _case(code: str, report: Report) -> ET.Element:
    name = " ".join(filter(None, [code, _names(report)[code]]))
    case = ET.Element("testcase", classname=f"headrace.{report.target.get('spec') or 'loader'}", name=name, time="0")
    counted = [row for row in report.findings if row.code == code and row.severity != "info"]
    if counted:
        failure = ET.SubElement(case, "failure", type=counted[0].severity, message=_headline(counted))
        failure.text = "\n\n".join(finding_text(row) for row in counted)
    for row in report.skipped:
        if row.code == code:
            ET.SubElement(case, "error" if row.crashed else "skipped", message=row.reason)
    told = [finding_text(row) for row in report.findings if row.code == code and row.severity == "info"]
    told += [f"known from the baseline: {row.message}" for row in report.known if row.code == code]
    told += [
        f"ignored at {one.at} ({one.reason}): {one.finding.message}"
        for one in report.ignored
        if one.finding.code == code
    ]
    if told:
        ET.SubElement(case, "system-out").text = "\n\n".join(told)
    return case


def _headline(rows: list[FindingRow]) -> str:
    split = f"[{rows[0].split}] " if rows[0].split else ""
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    return f"{split}{rows[0].message}{more}"
