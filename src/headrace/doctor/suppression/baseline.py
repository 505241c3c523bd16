"""Baselines: the findings that a team lives with for now, so that only new ones fail.

A finding is known if the baseline holds its code, place (without the line), field and split, and every sample that it
names. One more broken sample makes it a new finding; fewer, or samples that were not chosen this time, do not.
"""

from __future__ import annotations

import os
import pathlib

import msgspec

from headrace.doctor.report.fingerprint import Identity, identity, known_row
from headrace.doctor.report.model import FindingRow, KnownRow, Report
from headrace.doctor.suppression.verdict import with_findings
from headrace.doctor.wording.samples import listing
from headrace.errors import ConfigurationError, SampleId

__all__ = ["Baseline", "apply_baseline", "load_baseline", "write_baseline"]

BASELINE_SCHEMA = 1


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The file: JSON, made to be committed and read in review."""

    headrace_baseline: int = BASELINE_SCHEMA
    """Version of this file's form."""
    target: str
    """TARGET of the run that wrote it; for people."""
    findings: list[KnownRow]


def load_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Returns the baseline in a file.

    Raises:
        ConfigurationError: the file cannot be read, is no baseline, or was written by a later version.
    """
    try:
        found = msgspec.json.decode(pathlib.Path(path).read_bytes(), type=Baseline)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the baseline {path}: {error.strerror or error}",
            do=f"headrace diagnose TARGET --write-baseline {path}",
        ) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not a baseline", why=str(error)) from None
    if found.headrace_baseline != BASELINE_SCHEMA:
        raise ConfigurationError(
            f"{path} has form {found.headrace_baseline}, and this headrace reads form {BASELINE_SCHEMA}",
            do="pip install --upgrade headrace",
        )
    return found


def write_baseline(report: Report, path: str | os.PathLike[str]) -> Baseline:
    """Writes the findings of a report, those that an older baseline knew too, and returns what was written.

    Same findings, same bytes: no times or counts, so a baseline changes only when the findings do.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    rows = sorted((known_row(row) for row in (*report.findings, *report.known)), key=lambda row: str(identity(row)))
    baseline = Baseline(target=str(report.target.get("spec") or ""), findings=rows)
    data = msgspec.json.format(msgspec.json.encode(baseline), indent=2) + b"\n"
    try:
        pathlib.Path(path).write_bytes(data)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from None
    return baseline


def apply_baseline(report: Report, baseline: Baseline) -> Report:
    """Returns the report with the known findings set apart, and what the baseline knows and is no longer seen."""
    agreed: dict[Identity, set[SampleId]] = {}
    for row in baseline.findings:
        agreed.setdefault(identity(row), set()).update(row.sample_ids)
    fresh: list[FindingRow] = []
    known: list[FindingRow] = []
    notes = list(report.notes)
    seen: set[Identity] = {identity(known_row(row.finding)) for row in report.ignored}
    for finding in report.findings:
        remembered = known_row(finding)
        key = identity(remembered)
        seen.add(key)
        ids = agreed.get(key)
        if ids is None:
            fresh.append(finding)
        elif new := [sample_id for sample_id in remembered.sample_ids if sample_id not in ids]:
            fresh.append(finding)
            notes.append(f"{finding.code}: not in the baseline yet: {listing(new)}")
        else:
            known.append(finding)
    # A rule that was skipped says nothing about what it once found.
    judged = {*report.cleared, *(row.code for row in (*report.findings, *(one.finding for one in report.ignored)))}
    vanished = [row for row in baseline.findings if identity(row) not in seen and row.code in judged]
    return with_findings(report, fresh, known=[*report.known, *known], vanished=vanished, notes=notes)
