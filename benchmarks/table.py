"""Renders the records of a run as one Markdown table."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.rounds import best, limit_of, ratios
from benchmarks.targets import verdicts

HEAD = (
    "| regime and side | median | lowest to highest | of LIMIT | times best torch | CPU µs/sample | first batch | "
    "epoch gap | peak memory | also | targets |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|"
)
ALSO = {
    "step_efficiency": "step efficiency {:.2f}",
    "wait_median_ms": "median wait {:.2f} ms",
    "settled_after_s": "settled after {:.1f} s",
    "growth_mib": "growth {:.1f} MiB",
    "later_ms": "{:.1f} ms later than fresh",
    "state_us": "state {:.1f} µs",
}


def table(records: list[dict[str, Any]]) -> str:
    """Returns the table: LIMIT first, then every side in the order of its regime; failures say why."""
    return "\n".join([HEAD, *(row for record in records for row in _rows(record))])


def _rows(record: dict[str, Any]) -> list[str]:
    limit, torch = limit_of(record), best(record, "torch")
    judged = verdicts(record)
    rows = [f"| **{record['name']}** ({record['unit']}): {record['title']} {'| ' * 11}|"]
    for name, entry in record["sides"].items():
        if "reason" in entry or not entry["rounds"]:
            rows.append(f"| {name} {'| ' * 9}| {entry.get('reason', 'not measured').replace('|', '/')} | |")
            continue
        values = [values["value"] for values in entry["rounds"]]
        peak = entry.get("warm_up", {}).get("peak_bytes")
        cells = [
            f"{name}{' (best of torch)' if name == torch else ''}",
            _number(statistics.median(values)),
            f"{_number(min(values))} to {_number(max(values))}",
            _ratio(record, name, limit) if record["more_is_better"] else "",
            _ratio(record, name, torch),
            _median(entry, "cpu_us_per_sample", "{:,.1f}"),
            _median(entry, "first_batch_s", "{:.3f} s"),
            _milliseconds(entry, "epoch_gap_s"),
            f"{peak / (1 << 20):,.0f} MiB" if peak else "",
            ", ".join(filter(None, (*(_median(entry, key, text) for key, text in ALSO.items()), _chosen(entry)))),
            "; ".join(
                f"{f'{verdict.middle:.3g}, ' if verdict.values else ''}{verdict.asked}: {verdict.found}"
                for verdict in judged
                if verdict.target.side == name
            ),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _chosen(entry: dict[str, Any]) -> str:
    """What automatic settings chose, and whether they were still trying when the window began."""
    chosen = sorted({values["chose"] for values in entry["rounds"] if values.get("chose")})
    if not chosen:
        return ""
    restless = sum(values.get("settled_after_s") is None for values in entry["rounds"] if "window_s" in values)
    still = f", not settled in {restless} of {len(entry['rounds'])}" if restless else ""
    return f"chose {' or '.join(chosen)}{still}"


def _ratio(record: dict[str, Any], side: str, reference: str | None) -> str:
    found = ratios(record, side, reference) if reference else []
    if not found:
        return ""
    middle = statistics.median(found)
    return f"{middle:.2f}" if middle < 100 else f"{middle:,.0f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _median(entry: dict[str, Any], key: str, text: str) -> str:
    values = [values[key] for values in entry["rounds"] if values.get(key) is not None]
    return text.format(statistics.median(values)) if values else ""


def _milliseconds(entry: dict[str, Any], key: str) -> str:
    values = [values[key] for values in entry["rounds"] if values.get(key) is not None]
    return f"{1e3 * statistics.median(values):,.1f} ms" if values else ""
