"""The report as JSON, and the schema of that JSON: both come from the types in `model`."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.doctor.report.model import SCHEMA_VERSION, Report
from headrace.doctor.report.visible import visible
from headrace.errors import ConfigurationError

__all__ = ["from_json", "schema", "to_json"]


def to_json(report: Report) -> bytes:
    """Returns the report as indented UTF-8 JSON that ends with a line break. Same report, same bytes.

    Texts are as they are; only where one cannot be UTF-8 (a file name of other bytes) is it written out.
    """
    try:
        data = msgspec.json.encode(report)
    except UnicodeEncodeError:
        data = msgspec.json.encode(visible(report))
    return msgspec.json.format(data, indent=2) + b"\n"


def from_json(data: bytes | str) -> Report:
    """Returns the report that `to_json` wrote. Fields of a later version that are not known here are left out.

    Raises:
        ConfigurationError: this is no report, or its schema is newer than this version of headrace.
    """
    try:
        version = msgspec.json.decode(data, type=_Version).schema
        if version <= SCHEMA_VERSION:
            return msgspec.json.decode(data, type=Report)
    except msgspec.MsgspecError as error:
        raise ConfigurationError("this is not a headrace report", why=str(error)) from error
    raise ConfigurationError(
        f"this report has schema {version}, and this headrace reads up to {SCHEMA_VERSION}",
        do="pip install --upgrade headrace",
    )


def schema() -> dict[str, Any]:
    """Returns the JSON Schema (2020-12) of a report."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"headrace report, schema {SCHEMA_VERSION}",
        **msgspec.json.schema(Report),
    }


class _Version(msgspec.Struct):
    schema: int
