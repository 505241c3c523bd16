"""The record of a run as JSON: written piece by piece, gone on with, merged from several runs, and put into a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.regime import LIMIT
from benchmarks.table import table
from benchmarks.targets import summary

from benchmarks import measure

SCHEMA = 2
BEGIN, END = "<!-- results: written by `python -m benchmarks.run --write-docs` -->", "<!-- end of results -->"


class CannotMerge(Exception):
    """Two records that do not belong together; says why."""


def load(path: Path) -> dict[str, Any]:
    """Returns a record of an earlier run.

    Raises:
        CannotMerge: it was written by another version of the benchmarks.
    """
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.get("schema") != SCHEMA:
        raise CannotMerge(f"{path} has schema {record.get('schema')}; this is {SCHEMA}: measure again")
    return record


def write(path: Path, record: dict[str, Any]) -> None:
    """Writes a record in place of what was there; an interruption leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".writing")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def merged(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns one record of several: a regime measured twice counts as it was the last time, whole.

    Sides of different runs are never mixed within a regime, because ratios are taken within a round.

    Raises:
        CannotMerge: the records are of different machines, versions or sizes.
    """
    first = records[0]
    for other in records[1:]:
        for key in ("machine", "size"):
            if _steady(first[key]) != _steady(other[key]):
                raise CannotMerge(f"different {key}: {_steady(first[key])} and {_steady(other[key])}")
    regimes = {regime["name"]: regime for record in records for regime in record["regimes"]}
    orders = [record["order"] for record in records if "order" in record]
    return {
        **first,
        "created": records[-1]["created"],
        "command": " && ".join(record["command"] for record in records),
        "took_s": sum(record["took_s"] for record in records),
        "regimes": list(regimes.values()),
        **({"order": orders[-1]} if orders else {}),
    }


def page(record: dict[str, Any], above_command: str = "") -> str:
    """Returns the whole result as Markdown: machine, command, tables, targets."""
    machine, regimes = record["machine"], record["regimes"]
    orders = [measure.Result(**each) for each in record.get("order", ())]
    versions = dict(machine["versions"])
    for entry in (entry for regime in regimes for entry in regime["sides"].values()):
        if entry.get("version") and entry["library"] != LIMIT:
            versions[entry["library"]] = entry["version"]
    loads = sorted(regime["load_before"] for regime in regimes)
    parts = [
        f"{machine['processor']}, {machine['usable_cores']} usable cores, Python {machine['python']}; "
        + ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"{record['created'][:10]}, {record['took_s'] / 60:.0f} minutes"
        + (f"; load before each regime {loads[0]:.1f} to {loads[-1]:.1f}" if loads else ""),
        f"{above_command}```console\n$ {record['command']}\n```",
        table(regimes) if regimes else "",
        measure.table(orders) if orders else "",
        summary(regimes),
    ]
    return "\n\n".join(filter(None, parts))


def write_docs(path: Path, record: dict[str, Any]) -> None:
    """Puts the result between the two marks of a Markdown page.

    Raises:
        CannotMerge: the page has no marks.
    """
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CannotMerge(f"{path} has no place for results: a line {BEGIN} and a line {END}")
    result = page(record, above_command="<!-- not run: it takes an hour -->\n\n")
    path.write_text(f"{before}{BEGIN}\n\n{result}\n\n{END}{after}", encoding="utf-8")


def _steady(value: Any) -> Any:
    """What must be the same: without what differs from minute to minute."""
    return {key: each for key, each in value.items() if key != "load_before"} if isinstance(value, dict) else value
