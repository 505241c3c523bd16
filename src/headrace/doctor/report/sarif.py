"""The report as SARIF 2.1.0, the form in which code hosts and editors take findings.

Specification: OASIS, Static Analysis Results Interchange Format Version 2.1.0. Code hosts want a file for every result:
one that is about a part of an object is put into the file of TARGET, with the part as its logical location.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from headrace.doctor.report.fingerprint import fingerprint
from headrace.doctor.report.links import DOCS, rule_page
from headrace.doctor.report.model import FindingRow, Report, SkippedRow
from headrace.doctor.report.places import as_uri, place_of, source_line
from headrace.doctor.report.visible import visible

__all__ = ["to_sarif"]

LEVELS = {"error": "error", "warning": "warning", "info": "note"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"
"""Relative paths start where the command was started; a code host takes that for the root of the repository."""
MOST_IDS = 100
"""Ids in the properties of one result: a code host takes files of 10 MB, and the JSON report has all of them."""


def to_sarif(report: Report) -> bytes:
    """Returns the report as SARIF, indented UTF-8 JSON that ends with a line break. Same report, same bytes."""
    report = visible(report)
    rows = [*report.findings, *report.known, *(one.finding for one in report.ignored)]
    codes = sorted({*(row.code for row in rows), *(row.code for row in report.skipped), *report.cleared})
    results = [_result(row, report, codes) for row in report.findings]
    results += [{**_result(row, report, codes), **_known()} for row in report.known]
    results += [{**_result(one.finding, report, codes), **_ignored(one.reason, one.at)} for one in report.ignored]
    run = {
        "tool": {"driver": _driver(report, codes, rows)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "the folder in which headrace was started"}}},
        "automationDetails": {"id": f"headrace/{report.target.get('spec') or 'loader'}/"},
        "invocations": [_invocation(report)],
        "results": results,
        "properties": {"verdict": report.verdict},
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _driver(report: Report, codes: list[str], rows: list[FindingRow]) -> dict[str, Any]:
    return {
        "name": "headrace",
        "semanticVersion": report.environment.headrace,
        "informationUri": DOCS,
        "rules": [_rule(code, rows, report.skipped) for code in codes],
    }


def _rule(code: str, rows: list[FindingRow], skipped: list[SkippedRow]) -> dict[str, Any]:
    """What the catalogue says of a rule; a rule that is not in it is known by its rows alone."""
    from headrace.doctor import catalogue

    found = {rule.code: rule for rule in catalogue.rules()}.get(code)
    described: dict[str, Any] = {"id": code, "helpUri": rule_page(code)}
    if found is None:
        names = {**{row.code: row.name for row in skipped}, **{row.code: row.name for row in rows}}
        return described | {"name": names.get(code, code)}
    why, how = inspect.cleandoc(found.rationale), found.fix.text
    markdown = f"{why}\n\n**How to mend it.** {how}"
    if found.fix.snippet is not None:
        markdown += f"\n\n```\n{found.fix.snippet}\n```"
    return described | {
        "name": found.name,
        "shortDescription": {"text": found.summary},
        "fullDescription": {"text": found.summary},
        "help": {"text": f"{why}\n\nHow to mend it: {how}", "markdown": markdown},
        "properties": {"tags": ["data loading"]},
    }


def _result(row: FindingRow, report: Report, codes: list[str]) -> dict[str, Any]:
    split = f"[{row.split}] " if row.split else ""
    result: dict[str, Any] = {
        "ruleId": row.code,
        "ruleIndex": codes.index(row.code),
        "level": LEVELS[row.severity],
        "message": {"text": f"{split}{row.message}. To mend it: {row.fix.text}"},
        "locations": [_location(row, report)],
        "partialFingerprints": {"headrace/v1": fingerprint(row)},
        "rank": round(100 * row.confidence, 1),
        "properties": {
            "stage": row.stage,
            "basis": row.basis,
            "numSamples": len(row.sample_ids),
            "sampleIds": row.sample_ids[:MOST_IDS],
            "safety": row.fix.safety,
        },
    }
    return result


def _location(row: FindingRow, report: Report) -> dict[str, Any]:
    place = place_of(row, report)
    location: dict[str, Any] = {}
    if place is not None:
        uri = as_uri(place.file)
        base = {} if ":" in uri.partition("/")[0] else {"uriBaseId": ROOT}
        location["physicalLocation"] = {"artifactLocation": {"uri": uri, **base}}
        if place.line is not None:
            location["physicalLocation"]["region"] = {"startLine": place.line}
    is_own = place is not None and (source_line(row.where) is not None or (row.where or "").endswith(place.file))
    if not is_own:
        named = row.where or str(report.target.get("spec") or report.target.get("kind") or "loader")
        location["logicalLocations"] = [{"fullyQualifiedName": named}]
    return location


def _ignored(reason: str, at: str) -> dict[str, Any]:
    return {"suppressions": [{"kind": "inSource", "justification": f"{reason} ({at})"}]}


def _known() -> dict[str, Any]:
    return {
        "baselineState": "unchanged",
        "suppressions": [{"kind": "external", "justification": "known from the baseline"}],
    }


def _invocation(report: Report) -> dict[str, Any]:
    """How it went: skipped rules are notes; a rule that failed itself is an error of the tool."""
    return {
        "executionSuccessful": not any(row.crashed for row in report.skipped),
        "commandLine": report.command,
        "toolExecutionNotifications": [
            {
                "associatedRule": {"id": row.code},
                "level": "error" if row.crashed else "note",
                "message": {
                    "text": f"{row.code} {row.name}: {'failed itself' if row.crashed else 'skipped'}: {row.reason}"
                },
            }
            for row in report.skipped
        ],
    }
